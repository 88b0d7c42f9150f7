"""The screen for a loop of ours: each batch at most once, in the journal and in the log with its pictures.

What a batch did before its process died cannot be known, and a click done twice is not a click done once: so the journal
says *who* begins a batch before anything is done. Whoever finds a beginning of somebody else without a result does not
repeat it, but looks: the outcome is ``interrupted`` and has a picture of how things are.
"""

import asyncio
import base64
import uuid
from collections.abc import Sequence
from typing import Any, Literal

from service.desktop.desktops import Opening
from service.desktop.performed import Performed
from service.desktop.session import DesktopLost
from service.domain.desktop import (
    LOOKS,
    MAX_IMAGE_BYTES,
    ActionResult,
    Batch,
    DesktopState,
    Picture,
    Settle,
    Shot,
    Size,
)
from service.domain.events import EventType
from service.lifecycle.context import Context
from service.lifecycle.desktop_record import Kept, desktop_payload, keep_pictures, refer
from service.models.messages import Image
from service.sandboxes.contract import Sandbox
from service.scaffolds.contract import Translated
from service.scaffolds.loops import DesktopOutcome, Journal
from service.store import attempts
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

BEGIN, RESULT = "desktop.begin", "desktop"
_MEDIA: dict[str, Literal["image/png", "image/webp", "image/jpeg"]] = {
    "png": "image/png",
    "webp": "image/webp",
    "jpeg": "image/jpeg",
}


class JournalledDesktop:
    """See :class:`service.scaffolds.loops.LoopDesktop`. Made for one try of a loop: another try is somebody else."""

    def __init__(self, ctx: Context, attempt: AttemptRow, sandbox: Sandbox, opening: Opening, journal: Journal) -> None:
        self._ctx = ctx
        self._attempt = attempt
        self._sandbox = sandbox
        self._opening = opening
        self._journal = journal
        self._me = uuid.uuid4().hex
        self._screen = opening.size
        self._last: Picture | None = None

    @property
    def screen(self) -> Size:
        return self._screen

    async def perform(self, key: str, batch: Batch, *, call_id: str = "") -> DesktopOutcome:
        begun = await self._journal.step(BEGIN, key, self._begin)
        interrupted = begun["by"] != self._me

        async def act() -> dict[str, Any]:
            asked = Batch(settle=Settle(), shot=batch.shot or Shot()) if interrupted else batch
            acts = any(action.type not in LOOKS for action in batch.actions)
            performed = await self._performed(asked, before=acts and not interrupted)
            self._ctx.crash.reach("desktop.performed")
            kept = await keep_pictures(self._ctx.blobs, performed, before=self._last)
            await self._refer(kept)
            event = desktop_payload(
                call_id or key, "loop", batch.actions, performed, kept, interrupted=interrupted
            )  # fmt: skip
            state = performed.state
            return {"event": event, "state": None if state is None else state.model_dump(mode="json")}

        value = await self._journal.step(RESULT, key, act, _told)
        outcome = _outcome(value)
        self._last = outcome.picture or self._last
        if outcome.state is not None:
            self._screen = Size(width=outcome.state.width, height=outcome.state.height)
        return outcome

    async def show(self, picture: Picture) -> Image:
        data = await asyncio.to_thread(self._ctx.blobs.read_bytes, picture.sha256, MAX_IMAGE_BYTES)
        encoded = await asyncio.to_thread(base64.b64encode, data)
        return Image(media_type=_MEDIA[picture.format], data=encoded.decode())

    async def _begin(self) -> dict[str, Any]:
        return {"by": self._me}

    async def _performed(self, batch: Batch, *, before: bool) -> Performed:
        """Raises LauncherLost, SandboxGone."""
        try:
            session = await self._ctx.desktops.of(self._sandbox, self._opening)
        except DesktopLost as error:
            return Performed(error=error.type, detail=error.detail)
        return await session.perform(batch, before=before)

    async def _refer(self, kept: Kept) -> None:
        async def store(tx: Tx) -> None:
            await attempts.check_fence(tx, self._attempt.run_id, self._attempt.n, self._attempt.fence)
            await refer(tx, self._attempt.run_id, kept)

        await retrying(self._ctx.db, store, self._ctx.timing.database_patience_s)


def _told(value: dict[str, Any]) -> Sequence[Translated]:
    return [Translated(EventType.DESKTOP_ACTION, value["event"])]


def _outcome(value: dict[str, Any]) -> DesktopOutcome:
    event: dict[str, Any] = value["event"]
    state, after = value["state"], event["after"]
    return DesktopOutcome(
        state=None if state is None else DesktopState.model_validate(state),
        results=[ActionResult.model_validate(result) for result in event["results"]],
        picture=None if after is None else Picture.model_validate(after),
        images=[Picture.model_validate(picture) for picture in event["images"]],
        error=event["error"],
        detail=event.get("detail", ""),
        interrupted=event.get("interrupted", False),
    )
