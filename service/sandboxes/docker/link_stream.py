"""Terminals and pipes inside the sandbox, as far as the connection that they were opened on lasts."""

import asyncio

from service.sandboxes.contract import LauncherLost, Pipe, Terminal, TerminalEnd
from service.sandboxes.docker.framing import FRAME, Kind, Violation, integer, natural, pack
from service.sandboxes.docker.link_answers import read_answer
from service.sandboxes.docker.link_peer import Disconnected, Peer

WINDOW = 256 << 10
"""As the launcher's: so much comes unasked, in either direction."""
_BYTES, _RESIZE, _CREDIT, _HANG_UP = range(4)
_TAKEN = 1


class _Stream:
    def __init__(self, peer: Peer, number: int) -> None:
        self._peer = peer
        self._number = number
        self._came = bytearray()
        self._woken = asyncio.Event()
        self._answer = peer.expect(number)
        self._answer.add_done_callback(self._ended)
        peer.follow(number, self._take)

    async def read(self) -> bytes:
        while not self._came and not self._answer.done():
            self._woken.clear()
            await self._woken.wait()
        data = bytes(self._came)
        if data:
            self._came.clear()
            self._peer.post(Kind.TYPE, flag=_CREDIT, number=self._number, body=b"%d" % len(data))
        return data

    async def end(self) -> TerminalEnd:
        try:
            fields = read_answer(await asyncio.shield(self._answer))
            code, signal = (integer(field) for field in fields)
        except Disconnected:
            raise _lost() from None
        except (Violation, ValueError) as error:
            raise LauncherLost("launcher_lost", f"nonsense about a program's end: {error}") from None
        return TerminalEnd(code, signal)

    async def close(self) -> None:
        if not self._answer.done():
            self._peer.post(Kind.TYPE, flag=_HANG_UP, number=self._number)
            self._answer.set_exception(Disconnected())  # nobody will tell: whoever still reads must not wait for it
        self._peer.forget(self._number)

    def _ended(self, answer: "asyncio.Future[bytes]") -> None:
        answer.exception()  # seen, whether or not anybody asks for the end
        self._woken.set()

    async def _send(self, what: int, body: bytes) -> None:
        try:
            await self._peer.send(Kind.TYPE, flag=what, number=self._number, body=body)
        except Disconnected:
            raise _lost() from None

    def _take(self, flag: int, data: bytes) -> None:
        del flag
        if len(self._came) + len(data) > WINDOW:
            raise Violation("a program that sends more than it may")
        self._came += data
        self._woken.set()


class LinkTerminal(_Stream, Terminal):
    async def write(self, data: bytes) -> None:
        await self._send(_BYTES, data)

    async def resize(self, rows: int, columns: int) -> None:
        await self._send(_RESIZE, pack(b"%d" % rows, b"%d" % columns))


class LinkPipe(_Stream, Pipe):
    def __init__(self, peer: Peer, number: int) -> None:
        super().__init__(peer, number)
        self._free = WINDOW
        self._room = asyncio.Event()
        self._room.set()
        self._answer.add_done_callback(lambda _: self._room.set())

    async def read(self) -> bytes:
        data = await super().read()
        if not data and self._peer.ended.is_set():
            raise _lost()
        return data

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            await self._room.wait()
            if self._answer.done():
                if self._peer.ended.is_set():
                    raise _lost()
                return
            piece = rest[: min(FRAME, self._free)]
            self._free -= len(piece)
            if self._free == 0:
                self._room.clear()
            await self._send(_BYTES, bytes(piece))
            rest = rest[len(piece) :]

    def _take(self, flag: int, data: bytes) -> None:
        if flag != _TAKEN:
            super()._take(flag, data)
            return
        self._free += natural(data)
        if self._free > WINDOW:
            raise Violation("a program that took more than it was given")
        if self._free > 0:
            self._room.set()


def _lost() -> LauncherLost:
    return LauncherLost("launcher_lost", "the connection to the program is gone")
