"""Batches of actions on a screen, as a worker's bridge does them: each once.

Batches are known by their call's id, as the launcher knows tool calls: a caller that asks again awaits the batch under way
or gets its kept result. Nothing of it outlives this process; whoever must not have a batch done twice asks one worker only.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from service.desktop.desktops import Desktops, Opening
from service.desktop.performed import Encoded, Performed
from service.desktop.session import BUSY, LOST, DesktopLost
from service.domain.desktop import Batch
from service.domain.limits import MIB
from service.lifecycle.bridge_frames import Frame
from service.sandboxes.contract import LauncherLost, Sandbox, ToolFailed

MOST_RUNNING, MOST_KEPT, MOST_KEPT_BYTES, MOST_FORGOTTEN = 128, 64, 64 * MIB, 4096
Key = tuple[str, str]


@dataclass(slots=True)
class _Known:
    task: asyncio.Task[Frame]
    size: int = 0


class DesktopCalls:
    def __init__(self, desktops: Desktops) -> None:
        self._desktops = desktops
        self._known: dict[Key, _Known] = {}
        self._forgotten: dict[Key, None] = {}

    async def close(self) -> None:
        tasks = [known.task for known in self._known.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def act(self, sandbox: Sandbox, opening: Opening, head: dict[str, Any]) -> Frame:
        """head: batch, before, call_id. ``done``: state, results, images, took_s, error, detail; the body has the images.

        A caller that leaves does not stop the batch. Raises ToolFailed, LauncherLost, SandboxGone, EngineError.
        """
        key = sandbox.id, str(head["call_id"])
        batch = Batch.model_validate(head["batch"])
        if key in self._forgotten:
            raise ToolFailed("result_dropped", "the batch was done before and its result is no longer kept")
        if key not in self._known:
            if sum(not known.task.done() for known in self._known.values()) >= MOST_RUNNING:
                return _done(Performed(error=BUSY, detail=f"{MOST_RUNNING} batches are under way on this host"))
            work = self._perform(key, sandbox, opening, batch, bool(head.get("before")))
            task = asyncio.create_task(work)
            task.add_done_callback(_seen)
            self._known[key] = _Known(task)
        return await asyncio.shield(self._known[key].task)

    async def _perform(self, key: Key, sandbox: Sandbox, opening: Opening, batch: Batch, before: bool) -> Frame:
        try:
            done = await self._performed(sandbox, opening, batch, before)
        except BaseException:
            self._known.pop(key, None)  # nothing was done: it may be tried again under its id
            raise
        frame = _done(done)
        if done.error == BUSY:
            self._known.pop(key, None)
        known = self._known.get(key)
        if known is not None:
            known.size = len(frame.body) + sum(len(r.text) for r in done.results)
            self._evict()
        return frame

    async def _performed(self, sandbox: Sandbox, opening: Opening, batch: Batch, before: bool) -> Performed:
        """Raises LauncherLost, SandboxGone, EngineError, all of them before anything was done."""
        try:
            session = await self._desktops.of(sandbox, opening)
        except DesktopLost as error:
            return Performed(error=error.type, detail=error.detail)
        try:
            return await session.perform(batch, before=before)
        except LauncherLost as error:
            return Performed(error=LOST, detail=error.detail)

    def _evict(self) -> None:
        ended = [(key, known) for key, known in self._known.items() if known.size or known.task.done()]
        total = sum(known.size for _, known in ended)
        while len(ended) > MOST_KEPT or total > MOST_KEPT_BYTES:
            key, known = ended.pop(0)
            total -= known.size
            del self._known[key]
            self._forgotten[key] = None
            if len(self._forgotten) > MOST_FORGOTTEN:
                del self._forgotten[next(iter(self._forgotten))]


def _seen(task: asyncio.Task[Frame]) -> None:
    """Its caller may have left: nobody else would look at the exception."""
    if not task.cancelled():
        task.exception()


def _done(done: Performed) -> Frame:
    shown = [("before", done.before), *(("action", image) for image in done.images), ("shot", done.shot)]
    images = [(role, image) for role, image in shown if image is not None]
    said: dict[str, Any] = {
        "state": None if done.state is None else done.state.model_dump(mode="json"),
        "results": [r.model_dump(mode="json", exclude_defaults=True) for r in done.results],
        "images": [_described(role, image) for role, image in images],
        "took_s": done.took_s,
        "error": done.error,
        "detail": done.detail,
    }
    return Frame({"done": said}, b"".join(image.data for _, image in images))


def _described(role: str, image: Encoded) -> dict[str, Any]:
    size = {"width": image.width, "height": image.height, "bytes": len(image.data)}
    return {"role": role, "format": image.format, **size}
