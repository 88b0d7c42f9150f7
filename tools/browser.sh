#!/usr/bin/env bash
# A Chromium for the browser tests: the distribution's. Nothing is downloaded by hand.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
apt_install chromium
command -v chromium >/dev/null || die "no Chromium after installing package chromium (on Ubuntu: snap install chromium)"
