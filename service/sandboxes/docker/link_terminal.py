"""A terminal inside the sandbox, as far as the connection that it was opened on lasts."""

import asyncio

from service.sandboxes.contract import LauncherLost, Terminal, TerminalEnd
from service.sandboxes.docker.framing import Kind, Violation, integer, pack
from service.sandboxes.docker.link_answers import read_answer
from service.sandboxes.docker.link_peer import Disconnected, Peer

WINDOW = 256 << 10
"""As the launcher's: so much comes unasked."""
_BYTES, _RESIZE, _CREDIT, _HANG_UP = range(4)


class LinkTerminal(Terminal):
    def __init__(self, peer: Peer, number: int) -> None:
        self._peer = peer
        self._number = number
        self._came = bytearray()
        self._woken = asyncio.Event()
        self._answer = peer.expect(number)
        self._answer.add_done_callback(lambda _: self._woken.set())
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

    async def write(self, data: bytes) -> None:
        await self._send(_BYTES, data)

    async def resize(self, rows: int, columns: int) -> None:
        await self._send(_RESIZE, pack(b"%d" % rows, b"%d" % columns))

    async def end(self) -> TerminalEnd:
        try:
            fields = read_answer(await asyncio.shield(self._answer))
            code, signal = (integer(field) for field in fields)
        except Disconnected:
            raise LauncherLost("launcher_lost", "the connection to the terminal is gone") from None
        except (Violation, ValueError) as error:
            raise LauncherLost("launcher_lost", f"nonsense from a terminal: {error}") from None
        return TerminalEnd(code, signal)

    async def close(self) -> None:
        if not self._answer.done():
            self._peer.post(Kind.TYPE, flag=_HANG_UP, number=self._number)
        else:
            self._answer.exception()  # seen
        self._peer.forget(self._number)

    async def _send(self, what: int, body: bytes) -> None:
        try:
            await self._peer.send(Kind.TYPE, flag=what, number=self._number, body=body)
        except Disconnected:
            raise LauncherLost("launcher_lost", "the connection to the terminal is gone") from None

    def _take(self, _: int, data: bytes) -> None:
        if len(self._came) + len(data) > WINDOW:
            raise Violation("a terminal that sends more than it may")
        self._came += data
        self._woken.set()
