"""Signs of life in a stream of events whose provider is silent: comments, which readers of such streams drop.

Only once the provider's own status is known, and only between two events. Before that nothing is sent, however long the
wait is: a status cannot be taken back, and an error must not become a 200 (docs/decisions/0015).
"""

import asyncio
from dataclasses import dataclass, field

from service.domain.models import Dialect
from service.gateway.exchange import Exchange

COMMENT = b": keep-alive\n\n"
COMMENTED = frozenset({Dialect.ANTHROPIC, Dialect.OPENAI})
"""Whose clients read server-sent events as the standard says. Gemini's own SDK takes each line for data and loses the
answer; what reads a private protocol is not known."""
_BOUNDARIES = (b"\n\n", b"\r\n\r\n", b"\r\r")


def may_be_commented(dialect: Dialect, status: int, content_type: str) -> bool:
    return dialect in COMMENTED and status < 300 and content_type.partition(";")[0].strip() == "text/event-stream"


@dataclass(slots=True)
class Pulse:
    """Of one answer. :meth:`run` beats until it is cancelled."""

    exchange: Exchange
    status: int
    headers: list[tuple[str, str]]
    every_s: float
    _passing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tail: bytes = b""
    _last: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    async def pass_on(self, data: bytes) -> None:
        """Send what came from the provider; the first piece comes after the status."""
        async with self._passing:
            await self._send(data)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.001, self._last + self.every_s - loop.time()))
            async with self._passing:
                if loop.time() - self._last < self.every_s:
                    continue
                try:
                    await self._send(COMMENT if self._between_events() else b"")
                except OSError:  # the client has left; whoever waits for the answer learns it himself
                    return

    def _between_events(self) -> bool:
        return not self._tail or self._tail.endswith(_BOUNDARIES)

    async def _send(self, data: bytes) -> None:
        self._last = asyncio.get_running_loop().time()
        if not data:
            return
        if not self.exchange.started:
            await self.exchange.start(self.status, self.headers)
        await self.exchange.send(data)
        self._tail = (self._tail + data)[-4:] if len(data) < 4 else data[-4:]
