# Run inside the image as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
[ "$(id -un)" = agent ]
[ "$(pwd)" = /workspace ]
[ "$LANG" = C.UTF-8 ]
grep -q '^VERSION_ID="12"' /etc/os-release
bash -c 'printf "%s\n" ok' | grep -qx ok
ps -o pid= -p $$ >/dev/null
[ -s /etc/ssl/certs/ca-certificates.crt ]
python3 - <<'PY'
import asyncio, hashlib, hmac, json, socket, sqlite3, ssl, struct, subprocess, sys, zipfile

assert sys.version_info >= (3, 9), sys.version
assert sys.getfilesystemencoding() == "utf-8"
print("smoke passed: é")
PY
