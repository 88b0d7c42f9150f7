"""The session on the screen: X server with VNC, bus, window manager, panel or browser.

Whatever runs already is left alone, and what is started here outlives the process that started it.
"""

import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import xscreen

NUMBER = 1
VNC_PORT = 5900
RUNTIME = Path("/tmp/run-user")  # noqa: S108 - inside the sandbox, whose /tmp is its own
ENVIRONMENT = {
    "DISPLAY": f":{NUMBER}",
    "XDG_RUNTIME_DIR": str(RUNTIME),
    "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
    "GSETTINGS_BACKEND": "memory",
    "NO_AT_BRIDGE": "1",
}
_PROFILE = Path("/usr/local/share/desktop-profile")
_X_SOCKET = f"/tmp/.X11-unix/X{NUMBER}"  # noqa: S108
_X_LOCK = Path(f"/tmp/.X{NUMBER}-lock")  # noqa: S108
_X_LOG = RUNTIME / "x.log"
_X_READY_S, _WINDOWS_READY_S, _BROWSER_READY_S = 20.0, 10.0, 20.0
_ANSWER_S = 2.0
_GONE_S = 10.0
_POLL_S = 0.01
_ROOM_BYTES = 1 << 20


class SessionFailed(Exception):
    """There is no screen. ``type`` is a stable word, ``detail`` one sentence."""

    def __init__(self, type_: str, detail: str) -> None:
        super().__init__(f"{type_}: {detail}")
        self.type, self.detail = type_, detail


def ensure(surface: str, width: int, height: int) -> None:
    """Start what does not run of the session of ``surface`` (``desktop`` or ``browser``), on a screen of that many pixels.

    Returns when there is something to see. Raises SessionFailed.
    """
    if not answers():
        _prepare()
        _start_bus()
        _start_x(width, height)
    try:
        with xscreen.opened(ENVIRONMENT["DISPLAY"]) as screen:
            _ensure_windows(screen, surface)
    except xscreen.GONE as error:
        raise SessionFailed("x_server_gone", f"the X server went away: {error}"[:200]) from error


def _ensure_windows(screen: "xscreen.Screen", surface: str) -> None:
    if not screen.managed():
        screen.paint()
        start(["openbox", "--config-file", "/etc/xdg/openbox/rc.xml", "--sm-disable"])
        # A panel that comes up before the window manager sleeps for a second.
        _until(screen.managed, _WINDOWS_READY_S, "window_manager_failed", "openbox does not manage the screen")
    (_ensure_browser if surface == "browser" else _ensure_panel)(screen)


def answers() -> bool:
    """Tell whether an X server takes connections: it says something to a client's greeting in time."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(_X_SOCKET)
            probe.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
            return probe.recv(1) == b"\x01"
        except OSError:
            return False


def start(argv: Sequence[str], log: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start a program on the screen, in a process session of its own. Raises SessionFailed where it cannot be started."""
    try:
        with open(log or os.devnull, "wb") as errors:  # noqa: PTH123
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/workspace",
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
    except OSError as error:
        raise SessionFailed("start_failed", f"{argv[0]} cannot be started: {error.strerror}") from error


def _prepare() -> None:
    """Make the folders that programs expect. A home without room is the agent's affair: most programs do without."""
    room = Path(f"/tmp/.room.{os.getpid()}")  # noqa: S108
    try:
        RUNTIME.mkdir(mode=0o700, exist_ok=True)
        room.write_bytes(bytes(_ROOM_BYTES))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise SessionFailed("tmp_full" if full else "tmp_unusable", f"no screen in /tmp: {error.strerror}") from error
    finally:
        room.unlink(missing_ok=True)
    with suppress(OSError):
        Path("/workspace/output").mkdir(exist_ok=True)
        _copy_missing(_PROFILE, Path.home())


def _copy_missing(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        goal = target / entry.name
        if entry.is_dir():
            _copy_missing(entry, goal)
        elif not os.path.lexists(goal):
            shutil.copyfile(entry, goal)


def _start_x(width: int, height: int) -> None:
    _end_servers()
    for left in (_X_LOCK, Path(_X_SOCKET)):
        with suppress(OSError):
            left.unlink(missing_ok=True)
    server = start(_x_command(width, height), _X_LOG)

    def up() -> bool:
        if server.poll() is not None:
            raise SessionFailed("x_server_failed", f"the X server ended: {_last_line(_X_LOG)}")
        return answers()

    _until(up, _X_READY_S, "x_server_failed", "the X server does not answer")


def _x_command(width: int, height: int) -> list[str]:
    # A viewer can neither change the screen's size nor, by failing often, shut the others out.
    settings = {"SecurityTypes": "None", "AcceptSetDesktopSize": "0", "UseBlacklist": "0", "Log": "*:stderr:10"}
    return [
        "Xtigervnc",
        f":{NUMBER}",
        *("-geometry", f"{width}x{height}", "-depth", "24"),
        *("-rfbport", str(VNC_PORT), "-localhost", "-AlwaysShared", "-noreset"),
        *("-nolisten", "tcp", "-nolisten", "local"),
        *(word for name, value in settings.items() for word in (f"-{name}", value)),
    ]


def _end_servers() -> None:
    """An X server that does not answer, or is dying, would keep the sockets from its successor."""
    _until(lambda: not _killed_servers(), _GONE_S, "x_server_failed", "an X server does not end")


def _killed_servers() -> list[int]:
    found: list[int] = []
    for process in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            name, state = (process / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
            if name == "Xtigervnc" and state[0] not in "ZX":
                found.append(int(process.name))
                os.kill(found[-1], signal.SIGKILL)
    return found


def _start_bus() -> None:
    """Programs that find no bus go without one, so that nobody waits for it here."""
    if _listens(f"{RUNTIME}/bus"):
        return
    (RUNTIME / "bus").unlink(missing_ok=True)
    start(["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={RUNTIME}/bus"])


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _ensure_panel(screen: "xscreen.Screen") -> None:
    if not screen.shows("tint2"):
        start(["tint2", "-c", "/etc/xdg/tint2/tint2rc"])
        _until(lambda: screen.shows("tint2"), _WINDOWS_READY_S, "panel_failed", "the panel does not appear")


def _ensure_browser(screen: "xscreen.Screen") -> None:
    """The browser's keeper holds a lock for as long as it lives. A browser that does not appear is no failure: deskd
    goes on answering, and the keeper says on the screen what is wrong."""
    if not _locked(RUNTIME / "keeper.lock"):
        start([sys.executable, "-I", str(Path(__file__).with_name("keeper.py"))])
        with suppress(SessionFailed):
            _until(lambda: screen.shows("chromium"), _BROWSER_READY_S, "browser_failed", "no browser")


def _locked(path: Path) -> bool:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _until(done: Callable[[], bool], deadline_s: float, type_: str, detail: str) -> None:
    end = time.monotonic() + deadline_s
    while not done():
        if time.monotonic() > end:
            raise SessionFailed(type_, f"{detail} after {deadline_s:.0f} s")
        time.sleep(_POLL_S)


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(errors="replace")[-2000:].splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "without a word"
