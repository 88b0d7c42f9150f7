# Run inside the image as the agent, without network, on a read-only root: the session, its ports, one file per program.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
cd "$(mktemp -d)"
export HOME="$PWD/home"
mkdir home

chromium --version | grep -q '^Chromium '
for program in gpicview lxterminal mousepad openbox pcmanfm tint2 xpdf; do command -v "$program" > /dev/null; done
printf 'a,b\n1,ż\n' > a.csv
soffice --headless --infilter=CSV:44,34,76 --convert-to xlsx a.csv > /dev/null
python3 -c 'import zipfile; assert "ż" in zipfile.ZipFile("a.xlsx").read("xl/sharedStrings.xml").decode()'
[ "$(xdg-mime query default text/csv)" = libreoffice-calc.desktop ]
for entry in $(sed -n 's/^[^#=]*=//p' /etc/xdg/mimeapps.list | sort -u); do [ -e "/usr/share/applications/$entry" ]; done
for entry in $(sed -n 's/^launcher_item_app = //p' /etc/xdg/tint2/tint2rc); do [ -e "$entry" ]; done
fc-list | grep -q NotoSansCJK
fc-list | grep -q NotoColorEmoji

python3 -I - <<'PY'
import sys, time

sys.path.insert(0, "/usr/local/lib/deskd")
import session
from Xlib.display import Display

session.ensure("desktop", 1280, 800)
started = time.monotonic()
session.ensure("desktop", 1280, 800)
assert time.monotonic() - started < 1, "a running session is found"
root = Display(":1").screen().root.get_geometry()
assert (root.width, root.height) == (1280, 800)
listening = [line.split() for name in ("tcp", "tcp6") for line in list(open(f"/proc/net/{name}"))[1:]]
addresses = {line[1] for line in listening if line[3] == "0A"}
assert addresses and addresses <= {"0100007F:170C", "00000000000000000000000001000000:170C"}, addresses
print("smoke passed")
PY
