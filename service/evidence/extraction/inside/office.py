"""LibreOffice for all files of a room: started once, beside the readers that need none, and anew after a document that it
does not survive.

Four processes: the parent program, which only starts and ends the others; the server, which takes one question at a time
from the readers' socket and knows the clock; the driver, which speaks to the office program; and the office program.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.office_server import LINE, serve

RESERVE_S = 5.0
"""Of a reader's time, for what it says afterwards."""
_WAITING = 64
_ERRORS = frozenset({"cannot_open", "timeout", "encrypted", "office_unavailable"})


class Office:
    """See contract.Converter."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._socket = str(self._folder / "socket")
        self._pid: int | None = None
        self._hopeless: dict[Path, Failed] = {}
        """Of this process: each reader has one."""

    def start(self) -> None:
        """Start the server and, in it, the office program; return at once."""
        self._folder.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._socket)
        listener.listen(_WAITING)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            _be_server(listener, self._folder)
        listener.close()
        self._pid = pid

    def close(self) -> None:
        """Kill the server and all that it started."""
        if self._pid is None:
            return
        for kill in (os.killpg, os.kill):
            try:
                kill(self._pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue  # it led no group yet, or ended by itself
        os.waitpid(self._pid, 0)
        self._pid = None

    def convert(self, path: Path, to: str, out: Output) -> Path:
        """See contract.Converter. ``recalculated`` is xlsx with every formula's value found anew.

        A document that the office program did not manage is not put before it again.
        """
        if path in self._hopeless:
            raise self._hopeless[path]
        target = out.scratch.resolve() / f"{to}.{'xlsx' if to == 'recalculated' else to}"
        question = {
            "path": str(path.resolve()),
            "kind": out.kind,
            "to": to,
            "target": str(target),
            "pages": out.caps.pages,
        }
        answer = self._asked(question, max(1.0, out.left_s - RESERVE_S))
        if not answer.get("done"):
            error = str(answer.get("error"))
            detail = str(answer.get("detail", ""))[:300]
            self._hopeless[path] = Failed(error if error in _ERRORS else "cannot_open", detail)
            raise self._hopeless[path]
        if not target.is_file():
            raise Failed("cannot_open", "the office program wrote nothing")
        return target

    def _asked(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(seconds)
                peer.connect(self._socket)
                peer.sendall(json.dumps(question).encode() + b"\n")
                line = peer.makefile("rb").readline(LINE)
            answer: object = json.loads(line)
        except TimeoutError as error:
            raise Failed("timeout", "the office program did not answer in time") from error
        except (OSError, ValueError) as error:
            raise Failed("office_unavailable", str(error)) from error
        return answer if isinstance(answer, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _be_server(listener: socket.socket, folder: Path) -> None:
    """In the forked process: serve until killed."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.closerange(3, listener.fileno())
        os.closerange(listener.fileno() + 1, 256)
        serve(listener, folder)
    finally:
        os._exit(1)
