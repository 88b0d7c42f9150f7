#!/usr/bin/env bash
# Resolves both locks anew, with hashes and without index addresses.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root_dir"
resolver="$root_dir/.local/lock-venv"
[ -x "$resolver/bin/uv" ] || { .venv/bin/python -m venv "$resolver" && "$resolver/bin/pip" install -q uv; }
compile=("$resolver/bin/uv" pip compile -q --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
  --no-annotate --upgrade)
"${compile[@]}" pyproject.toml -o requirements.lock
"${compile[@]}" --group dev pyproject.toml -o requirements-dev.lock
