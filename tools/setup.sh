#!/usr/bin/env bash
# Makes .venv from the lock and installs the project into it. Does nothing, quickly, when that was done already.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root_dir"
venv="$root_dir/.venv"
stamp="$venv/.workstead-setup"

# The folder is part of the key: scripts of a virtual environment hold absolute paths.
place="$root_dir $(id -u)"
content="$({ cat requirements-dev.lock; sed '/^\[tool\.pytest/,$d' pyproject.toml; } | sha256sum | cut -d' ' -f1)"
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$place"$'\n'"$content" ]; then
  exit 0
fi

new_enough() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in python3.11 python3 python3.12 python3.13; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

make_venv() {
  local python
  python="$(find_python)" || {
    apt_install python3-venv
    python="$(find_python)" || { apt_install python3.11-venv && python="$(find_python)"; }
  } || die "no Python 3.11 or newer with venv found"
  say "making .venv with $python"
  "$python" -m venv --clear "$venv"
}

# A changed lock is installed over what is there; a moved folder needs new scripts.
[ "$(head -n 1 "$stamp" 2>/dev/null)" = "$place" ] && "$venv/bin/python" -c '' 2>/dev/null || make_venv
rm -f "$stamp"
# In two halves at once: most of pip's time is its own work on one core.
install_half() {
  awk -v half="$1" '/^[^ #]/ { n++ } n % 2 == half' requirements-dev.lock > "$venv/half-$1.lock"
  "$venv/bin/python" -m pip install -q --no-deps --require-hashes -r "$venv/half-$1.lock"
}
install_half 0 & other=$!
install_half 1 || { wait "$other"; exit 1; }
wait "$other"
"$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e .
"$venv/bin/python" -m pip check >/dev/null || die "the lock does not satisfy its own requirements: make lock"
printf '%s\n%s\n' "$place" "$content" > "$stamp"
