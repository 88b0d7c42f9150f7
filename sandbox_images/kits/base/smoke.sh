# Run inside the image as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
npm --version >/dev/null
/opt/kit/python/bin/python3 -I -S - <<'PY'
import bz2, ctypes, encodings.idna, hashlib, hmac, json, lzma, os, socket, sqlite3, ssl, struct, subprocess, sys, zlib

assert sys.version_info >= (3, 9), sys.version
assert sys.prefix == "/opt/kit/python", sys.prefix
# Only what is the kit's own is loaded: an environment may have another C library, or none.
used = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
assert used and all(path.startswith("/opt/kit/") for path in used), used
assert subprocess.run(["/bin/sh", "-c", "echo $LD_LIBRARY_PATH"], capture_output=True, check=True).stdout == b"\n"
print("smoke passed: é")
PY
