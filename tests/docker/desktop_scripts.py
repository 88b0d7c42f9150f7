"""Python programs that run inside a desktop sandbox, beside its session; each prints one JSON value."""

SETUP = """
import json, os, subprocess, sys, time
sys.path.insert(0, "/usr/local/lib/deskd")
import launching, session, xscreen, xserver
from Xlib import X, Xatom, error
from Xlib.display import Display
from Xlib.protocol import event
os.environ.setdefault("HOME", "/workspace/.home")

def until(done, seconds=60):
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
    return found

def titles():
    display = Display(":1")
    try:
        listed = display.screen().root.get_full_property(display.get_atom("_NET_CLIENT_LIST"), Xatom.WINDOW)
        found = []
        for window in listed.value if listed else ():
            try:
                name = display.create_resource_object("window", window).get_full_property(display.get_atom("_NET_WM_NAME"), 0)
            except error.BadWindow:
                continue  # gone since it was listed
            found.append(name.value.decode() if name else "")
        return found
    finally:
        display.close()

def processes(word):
    found = []
    for entry in os.listdir("/proc"):
        try:
            command = open(f"/proc/{entry}/cmdline").read().replace("\\0", " ") if entry.isdigit() else ""
        except OSError:
            continue
        if word in command and int(entry) != os.getpid():
            found.append(int(entry))
    return found

def kill(word):
    for process in processes(word):
        try:
            os.kill(process, 9)
        except ProcessLookupError:
            pass

def ensured(surface="desktop"):
    started = time.monotonic()
    session.ensure(surface, 1280, 800)
    return time.monotonic() - started
"""

READY = """
first, again = ensured(), ensured()
display = Display(":1")
listening = [line.split() for name in ("tcp", "tcp6") for line in list(open(f"/proc/net/{name}"))[1:]]
abstract = [line.split()[-1] for line in open("/proc/net/unix") if "@" in line]
print(json.dumps({"first": first, "again": again, "size": [display.screen().width_in_pixels, display.screen().height_in_pixels],
    "titles": titles(), "listening": sorted({line[1] for line in listening if line[3] == "0A"}), "abstract": abstract}))
"""

CHROMIUM = """
def facts(process):
    status = dict(line.split(":", 1) for line in open(f"/proc/{process}/status"))
    return {"spaces": [os.readlink(f"/proc/{process}/ns/{n}") for n in ("user", "pid", "net")],
            "ids": len(status["NSpid"].split()), "seccomp": int(status["Seccomp"]), "filters": int(status["Seccomp_filters"])}
launching.start(["chromium", "data:text/html,<title>here</title>"])
until(lambda: any("here" in title for title in titles()))
browser = [p for p in processes("/usr/lib/chromium/chromium ") if "--type=" not in open(f"/proc/{p}/cmdline").read()][0]
renderers = processes("--type=renderer")
command = open(f"/proc/{browser}/cmdline").read()
print(json.dumps({"here": facts("self"), "renderers": [facts(p) for p in renderers], "command": command}))
kill("/usr/lib/chromium")
until(lambda: titles() == ["panel"])
"""

OFFICE = """
def shown(kind, word):
    launching.start(["soffice", f"--{kind}"])
    until(lambda: any(word in title for title in titles()))
    time.sleep(1.5)  # a dialog of the first start comes after its window
    seen = titles()
    kill("soffice.bin")
    until(lambda: not any(word in title for title in titles()))
    return seen
kinds = [("writer", "Writer"), ("calc", "Calc"), ("impress", "Impress"), ("calc", "Calc")]
print(json.dumps([shown(kind, word) for kind, word in kinds]))
"""

NEW_SERVER = """
before = processes("Xtigervnc")
kill("Xtigervnc")
until(lambda: not xserver.answers())
took = ensured()
os.kill(processes("Xtigervnc")[0], 19)
frozen = ensured()
print(json.dumps({"took": took, "frozen": frozen, "same": before == processes("Xtigervnc"), "servers": len(processes("Xtigervnc")),
    "titles": titles()}))
"""

FULL_TMP = """
kill("Xtigervnc")
until(lambda: not xserver.answers())
with open("/tmp/full", "wb") as file:
    try:
        while True: file.write(bytes(1 << 20))
    except OSError: pass
try:
    ensured()
    said = "started"
except launching.SessionFailed as failed:
    said = failed.type
os.unlink("/tmp/full")
ensured()
print(json.dumps([said, titles()]))
"""

BROWSER = """
took = ensured("browser")
def top():
    display = Display(":1")
    try:
        windows = display.screen().root.query_tree().children
        return max((w.get_geometry().width, w.get_geometry().height) for w in windows if w.get_attributes().map_state == 2)
    except (error.BadWindow, error.BadDrawable, ValueError):
        return None
    finally:
        display.close()
until(lambda: top() == (1280, 800))
seen = titles()
display = Display(":1")
window = display.create_resource_object("window", display.screen().root.get_full_property(display.get_atom("_NET_CLIENT_LIST"), 0).value[0])
iconify = event.ClientMessage(window=window, client_type=display.get_atom("WM_CHANGE_STATE"), data=(32, [3, 0, 0, 0, 0]))
display.screen().root.send_event(iconify, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
display.sync()
until(lambda: window.get_attributes().map_state != 2)
until(lambda: window.get_attributes().map_state == 2)
kill("/usr/lib/chromium")
until(lambda: not titles())
until(titles)
again = ensured("browser")
print(json.dumps({"took": took, "titles": seen, "after": titles(), "again": again, "keepers": len(processes("keeper.py"))}))
"""

CRASH_LOOP = """
def wall():
    display = Display(":1")
    try:
        image = display.screen().root.get_image(40, 44, 500, 40, 2, 0xFFFFFFFF)
        return image.data.count(b"\\xff\\xff\\xff")
    finally:
        display.close()
ensured("browser")
starts, said = 0, 0
end = time.monotonic() + 45
while time.monotonic() < end and not said:
    if processes("/usr/lib/chromium/chromium "):
        starts += 1
        kill("/usr/lib/chromium")
        until(lambda: not processes("/usr/lib/chromium/chromium "))
    if not titles():
        said = wall()
    time.sleep(0.05)
calm = time.monotonic()
until(lambda: time.monotonic() - calm > 3)
print(json.dumps({"starts": starts, "said": said, "still": len(processes("/usr/lib/chromium/chromium ")), "answers": xserver.answers(),
    "again": ensured("browser")}))
"""

PROXIED = """
import http.server, threading
asked = []
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>by the proxy</title>")
    def do_CONNECT(self):
        asked.append(self.path)
        self.send_error(502)
    def log_message(self, *args): pass
proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=proxy.serve_forever, daemon=True).start()
os.environ["HTTPS_PROXY"] = f"http://127.0.0.1:{proxy.server_port}"
launching.start(["chromium", "http://shop.example/", "https://bank.example/"])
until(lambda: any(path.startswith("http://shop.example") for path in asked) and "bank.example:443" in asked)
until(lambda: any("by the proxy" in title or "bank.example" in title for title in titles()))
print(json.dumps(sorted(set(path for path in asked if "example" in path))))
kill("/usr/lib/chromium")
until(lambda: titles() == ["panel"])
"""

IMPOSTOR = """
import socket, threading
kill("Xtigervnc")
until(lambda: not processes("Xtigervnc"))
os.unlink("/tmp/.X11-unix/X1")
listening = socket.socket(socket.AF_UNIX)
listening.bind("/tmp/.X11-unix/X1")
listening.listen()
def lie():
    while True:
        caller = listening.accept()[0]
        caller.recv(4096)  # who is hung up on while greeting takes it for a server that is gone, and starts one
        caller.sendall(bytes([1, 0, 11, 0, 0, 0, 255, 255]))
        caller.close()
threading.Thread(target=lie, daemon=True).start()
try:
    ensured()
    said = "started"
except launching.SessionFailed as failed:
    said = failed.type
print(json.dumps(said))
os.unlink("/tmp/.X11-unix/X1")
"""

BROWSER_NEW_SERVER = """
ensured("browser")
kill("Xtigervnc")
until(lambda: not xserver.answers())
ensured("browser")
until(lambda: any("Chromium" in title for title in titles()))
print(json.dumps({"titles": titles(), "keepers": len(processes("keeper.py"))}))
"""
