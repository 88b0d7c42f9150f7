#!/usr/bin/env bash
# The service in containers on this machine's engine: images, secrets, `up`. Arguments go to compose instead of `up -d`.
# Uses what there is: the compose plugin, docker-compose, else Debian's package of it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root_dir"
export WORKSTEAD_DATA_DIR="${WORKSTEAD_DATA_DIR:-/var/lib/workstead-compose}"

if docker compose version >/dev/null 2>&1; then compose=(docker compose)
else
  command -v docker-compose >/dev/null || apt_install docker-compose
  compose=(docker-compose)
fi

prepare() {
  as_root install -d -m 0711 "$WORKSTEAD_DATA_DIR"
  as_root install -d -m 0700 "$WORKSTEAD_DATA_DIR/secrets"
  # Made once; the database keeps the first one.
  as_root sh -c 'umask 077; test -s "$0" || head -c 24 /dev/urandom | base64 | tr "+/" "-_" >"$0"' \
    "$WORKSTEAD_DATA_DIR/secrets/database_password"
  .venv/bin/python -m deploy.build
}

if [ $# -gt 0 ]; then exec "${compose[@]}" "$@"; fi
prepare
"${compose[@]}" up -d --remove-orphans
say "up; a token: ${compose[*]} exec api python -m service token create"
