"""Following the feed of changes: one loop for the long poll and for the stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from starlette.types import Send

from service.api.change_view import changed_view, cursor_of
from service.api.sse import HEARTBEAT_S, REREAD_S, SseStream, send_text
from service.api.state import ApiState
from service.store import changes
from service.store.changes import ChangePage, Position
from service.store.notifications import CHANGES, Subscription

GATHER_S = 0.025
"""Least seconds between two looks of one reader, however often it is woken."""
RELOOK_S, LONGEST_RELOOK_S = 0.025, 0.25
"""Seconds until the next look while an open transaction keeps a change from being told; doubling."""
STREAM_BATCH = 200


@dataclass(frozen=True, slots=True)
class FeedRequest:
    project_id: str
    token_id: str
    kinds: tuple[str, ...]
    after: Position
    limit: int = STREAM_BATCH


async def looks(state: ApiState, asked: FeedRequest) -> AsyncGenerator[ChangePage]:
    """Yield what is there, and look again when it may be more: woken, and every 2 s. Use it in ``aclosing``."""
    after, pause = asked.after, RELOOK_S
    async with state.notifications.subscribe(CHANGES, asked.project_id) as woken:
        while True:
            async with state.db.statement() as tx:
                page = await changes.read(tx, asked.project_id, asked.token_id, asked.kinds, after, asked.limit)
            after = page.position
            yield page
            if not page.full:
                pause = await _wait(woken, page, pause)


async def _wait(woken: Subscription, page: ChangePage, pause: float) -> float:
    """Wait until it is worth looking; return how long to wait next time if the same transaction still is open."""
    await asyncio.sleep(GATHER_S)
    if not page.pending:
        await woken.wait(REREAD_S)
        return RELOOK_S
    news = await woken.wait(pause)
    return RELOOK_S if news or page.changes else min(pause * 2, LONGEST_RELOOK_S)


class ChangeStream(SseStream):
    """The feed until the client leaves or its token ends. Each message's id is the cursor after it."""

    def __init__(self, state: ApiState, asked: FeedRequest) -> None:
        super().__init__(state, asked.token_id)
        self._asked = asked

    async def follow(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        spoke = loop.time()
        async with aclosing(looks(self.state, self._asked)) as pages:
            async for page in pages:
                if not page.token_good:
                    return
                if page.expired:  # only while a client slept over a week of tombstones: it comes back and gets 410
                    return
                if page.changes or loop.time() - spoke >= HEARTBEAT_S:
                    await send_text(send, self._messages(page))
                    spoke = loop.time()

    def _messages(self, page: ChangePage) -> str:
        views = [changed_view(c, self._asked.kinds) for c in page.changes]
        told = "".join(f"id: {v.cursor}\ndata: {v.model_dump_json()}\n\n" for v in views)
        # An id without data moves the browser's Last-Event-ID on and shows nothing: a reconnect need not read again.
        return told if page.full else f"{told}id: {cursor_of(page.position, self._asked.kinds)}\n\n: still here\n\n"
