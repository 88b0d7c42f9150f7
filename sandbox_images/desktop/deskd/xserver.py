"""The X server of the session, which is the VNC server as well: started anew where it is gone or says nothing."""

import os
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path

from launching import NUMBER, RUNTIME, SessionFailed, start, until

VNC_PORT = 5900
_SOCKET = Path(f"/tmp/.X11-unix/X{NUMBER}")  # noqa: S108 - inside the sandbox, whose /tmp is its own
_LOCK = Path(f"/tmp/.X{NUMBER}-lock")  # noqa: S108
_LOG = RUNTIME / "x.log"
_READY_S, _GONE_S, _ANSWER_S = 20.0, 10.0, 2.0


def answers() -> bool:
    """Tell whether an X server takes connections: it says something to a client's greeting in time."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(str(_SOCKET))
            probe.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
            return probe.recv(1) == b"\x01"
        except OSError:
            return False


def start_server(width: int, height: int) -> None:
    """Start a server with a screen of that many pixels in the place of any other. Raises SessionFailed."""
    _end_servers()
    for left in (_LOCK, _SOCKET):
        with suppress(OSError):
            left.unlink(missing_ok=True)
    server = start(_command(width, height), _LOG)

    def up() -> bool:
        if server.poll() is not None:
            raise SessionFailed("x_server_failed", f"the X server ended: {_last_line(_LOG)}")
        return answers()

    until(up, _READY_S, "x_server_failed", "the X server does not answer")


def _command(width: int, height: int) -> list[str]:
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
    until(lambda: not _killed_servers(), _GONE_S, "x_server_failed", "an X server does not end")


def _killed_servers() -> list[int]:
    found: list[int] = []
    for process in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            name, state = (process / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
            if name == "Xtigervnc" and state[0] not in "ZX":
                found.append(int(process.name))
                os.kill(found[-1], signal.SIGKILL)
    return found


def _last_line(path: Path) -> str:
    try:
        lines = [line.strip() for line in path.read_text(errors="replace")[-2000:].splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-1][:200] if lines else "without a word"
