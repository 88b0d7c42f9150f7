"""What all streams of Server-Sent Events have in common: they run beside the wait for the client's leaving."""

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.state import ApiState
from service.api.stream_slots import slot
from service.domain.errors import Unavailable

REREAD_S = 2.0
"""Seconds between two looks at the database without a notification; they also end the stream of a revoked token."""
HEARTBEAT_S = 15.0
SEND_S = 30.0
"""Seconds that a client may take to read what was sent; then it is cut, and comes back with its Last-Event-ID."""
RETRY_MS = 1000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class SseStream(Response):
    """Streams until :meth:`follow` returns or the client leaves."""

    media_type = "text/event-stream"

    def __init__(self, state: ApiState, token_id: str) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self.state = state
        self._token_id = token_id

    async def follow(self, send: Send) -> None:
        """Send messages by :func:`send_text` until there are no more."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        with slot(self.state, self._token_id):
            pump = asyncio.create_task(self._pump(send))
            gone = asyncio.create_task(_disconnected(receive))
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (pump, gone):
                    task.cancel()
                results = await asyncio.gather(pump, gone, return_exceptions=True)
        if isinstance(results[0], Exception) and not isinstance(results[0], (TimeoutError, Unavailable)):
            raise results[0]

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send_text(send, f"retry: {RETRY_MS}\n\n")
        await self.follow(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_text(send: Send, text: str) -> None:
    async with asyncio.timeout(SEND_S):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
