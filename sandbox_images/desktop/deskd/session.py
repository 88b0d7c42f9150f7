"""The session on the screen: X server with VNC, bus, window manager, panel or browser.

Whatever runs already is left alone, and what is started here outlives the process that started it.
"""

import errno
import fcntl
import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

import xscreen
import xserver
from launching import ENVIRONMENT, RUNTIME, SessionFailed, start, until

_PROFILE = Path("/usr/local/share/desktop-profile")
_BUS = RUNTIME / "bus"
_WINDOWS_READY_S, _BROWSER_READY_S = 10.0, 20.0
_ANSWER_S = 2.0
_ROOM_BYTES = 1 << 20


def ensure(surface: str, width: int, height: int) -> None:
    """Start what does not run of the session of ``surface`` (``desktop`` or ``browser``), on a screen of that many pixels.

    Returns when there is something to see. Raises SessionFailed.
    """
    if not xserver.answers():
        _prepare()
        _start_bus()
        xserver.start_server(width, height)
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
        until(screen.managed, _WINDOWS_READY_S, "window_manager_failed", "openbox does not manage the screen")
    (_ensure_browser if surface == "browser" else _ensure_panel)(screen)


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


def _start_bus() -> None:
    """Programs that find no bus go without one, so that nobody waits for it here."""
    if _listens(str(_BUS)):
        return
    with suppress(OSError):
        _BUS.unlink(missing_ok=True)
    start(["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={_BUS}"])


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
        until(lambda: screen.shows("tint2"), _WINDOWS_READY_S, "panel_failed", "the panel does not appear")


def _ensure_browser(screen: "xscreen.Screen") -> None:
    """The browser's keeper holds a lock for as long as it lives. A browser that does not appear is no failure: deskd
    goes on answering, and the keeper says on the screen what is wrong."""
    if not _locked(RUNTIME / "keeper.lock"):
        start([sys.executable, "-I", str(Path(__file__).with_name("keeper.py"))])
        with suppress(SessionFailed):
            until(lambda: screen.shows("chromium"), _BROWSER_READY_S, "browser_failed", "no browser")


def _locked(path: Path) -> bool:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
