#!/usr/bin/env bash
# Puts the viewer of screens (noVNC, locked with its hash) where the pages serve it. Does nothing, quickly, when it is there.
# Without npm the pages say that there is no viewer; with --need npm is installed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
source_dir="$root_dir/tools/browser_code"
target="$root_dir/service/dashboard/static/vendor/novnc"
wanted="$(sha256sum < "$source_dir/package-lock.json" | cut -d' ' -f1)"
[ "$(cat "$target/.lock" 2>/dev/null)" = "$wanted" ] && exit 0

if ! command -v npm >/dev/null; then
  [ "${1:-}" = --need ] || { say "no npm: the pages will not show screens (apt-get install npm; make setup)"; exit 0; }
  apt_install npm
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$source_dir"/package*.json "$work/"
(cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
found="$work/node_modules/@novnc/novnc"
mkdir "$work/novnc"
cp -r "$found/core" "$found/vendor" "$found/LICENSE.txt" "$found/AUTHORS" "$work/novnc/"
printf '%s\n' "$wanted" > "$work/novnc/.lock"
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$work/novnc" "$target"
