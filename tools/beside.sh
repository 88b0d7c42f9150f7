#!/usr/bin/env bash
# Run two commands at once. The first shows its output when both have ended, for good or ill.
set -euo pipefail
shown=$(mktemp)
trap 'rm -f "$shown"; kill %1 2>/dev/null || true' EXIT
bash -c "$1" >"$shown" 2>&1 &
failed=0
bash -c "$2" || failed=1
wait %1 || failed=1
printf '%s\n' "$1"
cat "$shown"
exit "$failed"
