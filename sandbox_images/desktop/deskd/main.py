"""deskd: acts on the screen of its sandbox for the host, which speaks on stdin and listens on stdout.

Its own thread does the work; the main one goes on listening, so that an abort is heard at any moment.
"""

import argparse
import os
import queue
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

sys.path.insert(0, str(Path(__file__).parent))

import wire
from actions import Desk
from browser import Browser
from clipboard import Owner, Reader
from faults import Refused, ServerGone
from keyboards import Keyboard
from pause import Pause
from perform import Performer
from pointer import Pointer
from release import Hands
from screen import size_of
from session import ENVIRONMENT, SessionFailed, ensure
from windows import Windows
from xlink import LOST, connect, events

PROTOCOL: Final = 1
_LOG = "/tmp/deskd.log"  # noqa: S108 - inside the sandbox, whose /tmp is its own
_MOST_LOG: Final = 1 << 20
_LET_GO_S: Final = 3.0


class Server:
    def __init__(self, receiving: int, sending: int, desk: Desk) -> None:
        self._in, self._out, self._desk = receiving, sending, desk
        self._lock = threading.Lock()
        self._performer = Performer(desk)
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(1)
        self._busy = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    def serve(self) -> None:
        """Return at the end of what the host says."""
        threading.Thread(target=self._work, daemon=True).start()
        while True:
            try:
                request = wire.receive(self._in)
            except Refused as refused:
                self._fault(0, "bad_request", str(refused))
                return
            if request is None:
                return
            self._take(request)

    def let_go(self) -> None:
        """Stop what is being done, and let go of everything."""
        self._desk.pause.abort()
        if self._idle.wait(_LET_GO_S):
            self._desk.hands.release_all()

    def say(self, head: dict[str, Any], body: list[bytes] | None = None) -> None:
        with self._lock:
            wire.send(self._out, head, body or [])

    def _take(self, request: dict[str, Any]) -> None:
        number, what = request.get("id"), request.get("do")
        if isinstance(number, bool) or not isinstance(number, int):
            self._fault(0, "bad_request", "a request has a whole number as id")
        elif what == "perform":
            self._begin(number, request)
        elif what in ("abort", "ping"):
            if what == "abort" and not self._idle.is_set():
                self._desk.pause.abort()
            self.say({"id": number, "ok": True})
        else:
            self._fault(number, "bad_request", "do is perform, abort or ping")

    def _begin(self, number: int, request: dict[str, Any]) -> None:
        if not self._idle.is_set():
            self._fault(number, "busy", "one batch at a time")
            return
        self._idle.clear()
        self._desk.pause.begin()
        self._queue.put(request)

    def _work(self) -> None:
        while True:
            request = self._queue.get()
            try:
                head, body = self._performer.perform(request)
                events(self._desk.link)
            except Refused as refused:
                self._done(request, {"error": {"type": "bad_request", "detail": str(refused)}})
            except (ServerGone, *LOST) as gone:
                self._end(request, "x_server_gone", str(gone) or "the connection was closed")
            except Exception:  # noqa: BLE001 - the edge of the working thread: the host is told, and starts another helper
                traceback.print_exc()
                self._end(request, "internal", "deskd failed; its log says more")
            else:
                self._done(request, head, body)

    def _done(self, request: dict[str, Any], head: dict[str, Any], body: list[bytes] | None = None) -> None:
        # Idle before the answer: the host's next request may be here before this thread goes on.
        self._idle.set()
        self.say({"id": request["id"], **head}, body)

    def _end(self, request: dict[str, Any], kind: str, detail: str) -> NoReturn:
        try:
            self._fault(request["id"], kind, detail)
        finally:
            os._exit(1)

    def _fault(self, number: int, kind: str, detail: str) -> None:
        self.say({"id": number, "error": {"type": kind, "detail": detail[:500]}})


def desk_of(surface: str) -> Desk:
    """Raises ServerGone."""
    name = ENVIRONMENT["DISPLAY"]
    link, pause = connect(name), Pause()
    hands, windows = Hands(link), Windows(link)
    hands.release_all()
    keyboard = Keyboard(link, hands, windows, pause)
    browser = Browser(windows, keyboard, pause, kept=surface == "browser")
    return Desk(
        link, pause, hands, keyboard, Pointer(link, hands, pause), windows, browser, Reader(link, pause), Owner(name)
    )


def streams() -> tuple[int, int]:
    """Take stdin and stdout for ourselves: nothing else may read or print there."""
    receiving, sending = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(_log(nothing), 2)
    return receiving, sending


def _log(otherwise: int) -> int:
    try:
        log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        if os.fstat(log).st_size > _MOST_LOG:
            os.ftruncate(log, 0)
    except OSError:
        return otherwise
    return log


def run(receiving: int, sending: int, surface: str, size: tuple[int, int]) -> int:
    began = time.monotonic()
    try:
        ensure(surface, *size)
        desk = desk_of(surface)
        width, height = size_of(desk.link)
    except SessionFailed as failed:
        wire.send(sending, {"fatal": {"type": failed.type, "detail": failed.detail[:500]}})
        return 1
    except (ServerGone, *LOST) as gone:
        wire.send(sending, {"fatal": {"type": "x_server_gone", "detail": str(gone)[:500]}})
        return 1
    server = Server(receiving, sending, desk)
    ready_s = round(time.monotonic() - began, 3)
    server.say({"hello": {"protocol": PROTOCOL, "width": width, "height": height, "ready_s": ready_s}})
    try:
        server.serve()
    finally:
        server.let_go()
    return 0


def _stop(*_: object) -> NoReturn:
    raise SystemExit(0)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--surface", choices=("desktop", "browser"), required=True)
    options.add_argument("--size", required=True)
    given = options.parse_args()
    width, height = (int(side) for side in given.size.split("x"))
    signal.signal(signal.SIGTERM, _stop)
    receiving, sending = streams()
    code = 1
    try:
        code = run(receiving, sending, given.surface, (width, height))
    finally:
        # Threads that serve the clipboard or wait for the server are not waited for.
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
