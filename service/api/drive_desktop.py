"""A remote driver's batch on its run's screen: read, done once, recorded with its pictures. The same for REST and MCP.

A batch is never done twice. Its call is in the log, with the worker's fence, before it is asked for: whoever finds the call
there (a client that asks again, this process after its worker died) gets the recorded result, waits for the worker that is
doing it, or learns that it was ``interrupted``, with a picture of how the screen is now.
"""

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from service.api.desktop_answer import interrupted, lost, performed_of
from service.api.desktop_reading import Read, look_at_size, read
from service.api.desktop_view import DesktopActed, DesktopRequest, RecordedPicture, recorded
from service.api.driving import Driven, TakenOver, call_event, call_source
from service.api.rendering import now
from service.api.screens import CALL, Screened, screen_of
from service.desktop.performed import Performed
from service.domain.agents import Driver
from service.domain.desktop import MAX_IMAGE_BYTES, ActionResult, Batch, DesktopAction, DesktopState, Picture, Shot
from service.domain.errors import Conflict
from service.domain.events import Event, EventType, NewEvent
from service.domain.limits import MIB
from service.lifecycle.desktop_record import By, Kept, desktop_payload, keep_pictures, refer
from service.store import driving, events
from service.store.rows import AttemptRow

ACT, LOOK = "desktop_actions", "desktop_screenshot"
"""The calls' names in the log, and as MCP tools."""
SLACK_S = 120.0
"""Beyond a batch's own waits: other batches before it, encoding, typing."""
_CALLED, _ACTED, _SAID = 0, 1, 2
"""Offsets of a call's events."""
_MOST_EVENT = 64 * MIB


@dataclass(frozen=True, slots=True)
class _Call:
    """One batch on its way."""

    driven: Driven
    body: DesktopRequest
    id: str
    screened: Screened
    attempt: AttemptRow

    @property
    def by(self) -> By:
        return "person" if self.screened.run.driver is Driver.PERSON else "remote"


async def act(driven: Driven, body: DesktopRequest, tool: str = ACT) -> DesktopActed:
    """Do a batch, record it, and return what came of it.

    Raises Invalid, Conflict ``no_screen``, ``lease_lost``, ``desktop_lost`` …, RateLimited ``busy``, Unavailable.
    """
    id = body.id()
    async with driven.state.db.transaction() as tx:
        run, attempt = await driven.hold(tx)
        call = _Call(driven, body, id, await screen_of(tx, run), attempt)
        known = await events.of_source(tx, run.id, attempt.n, call_source(id))
    async with driven.beating():
        done = next((event for event in known if event.type == EventType.DESKTOP_ACTION), None)
        if done is not None:
            return await _again(call, await asyncio.to_thread(_whole, driven, done))
        size = await look_at_size(driven, attempt) if body.vocabulary is not None else None
        what = read(body, call.screened.manifest, size)
        fence = _fence(known)
        if fence is None:
            fence = await _announce(call, what, tool)
        return await _done(call, what, *await _ask(call, what, fence))


async def _announce(call: _Call, what: Read, tool: str) -> int:
    """Say in the log what is about to be done, and by the worker of which fence."""
    arguments: dict[str, Any] = {"actions": [_plain(action) for action in what.actions]}
    if call.body.vocabulary is not None:
        arguments["vocabulary"] = call.body.vocabulary
    async with call.driven.state.db.transaction() as tx:
        _, attempt = await call.driven.hold(tx)
        payload = {"id": call.id, "name": tool, "arguments": arguments, "fence": attempt.fence}
        called = [call_event(EventType.TOOL_CALL, call.id, _CALLED, payload)]
        if what.checks:
            said = {"id": call.id, "state": "acknowledged", "by": "driver", "intent": _intent(what.actions)}
            checks = {**said, "checks": [check.model_dump(mode="json") for check in what.checks]}
            called.append(NewEvent(EventType.CONFIRMATION, checks, f"confirm.{call.id}", 0, now()))
        await call.driven.append(tx, attempt, called)
        await driving.note_call(tx, call.driven.run_id, tool)
        return attempt.fence


async def _ask(call: _Call, what: Read, fence: int) -> tuple[Performed, bool]:
    """Return what came of the batch, or (and True) how the screen is after a worker died over it. Raises Expected."""
    shot = call.body.screenshot or Shot()
    batch = Batch(actions=[_plain_action(a) for a in what.actions], settle=call.body.settle, shot=shot)
    head = {"call": CALL, "call_id": f"drv-{call.id}", "batch": _json(batch), "before": bool(what.actions)}
    seconds = sum(a.seconds for a in what.actions) + (batch.settle.cap_s if batch.settle else 0.0) + SLACK_S
    try:
        return performed_of(await call.driven.ask(call.attempt.n, head, seconds=seconds, fence=fence)), False
    except TakenOver:
        look = {**head, "call_id": f"drv-{call.id}.after", "batch": _json(Batch(shot=shot)), "before": False}
        return performed_of(await call.driven.ask(call.attempt.n, look, seconds=SLACK_S)), True


async def _done(call: _Call, what: Read, came: Performed, died: bool) -> DesktopActed:
    """Record it and answer. Raises Conflict for a batch that the desktop as a whole did not do."""
    came = interrupted(came) if died else came
    kept = await keep_pictures(call.driven.state.blobs, came)
    payload = desktop_payload(call.id, call.by, what.actions, came, kept, interrupted=died)
    payload |= {"checks": [c.model_dump(mode="json") for c in what.checks], "ending": what.ending}
    payload |= {"state": None if came.state is None else came.state.model_dump(mode="json"), "detail": came.detail}
    await _record(call, payload, kept)
    if lost(came):
        raise Conflict(came.error or "desktop_lost", came.detail)
    return await _acted(call, payload)


async def _record(call: _Call, payload: dict[str, Any], kept: Kept) -> None:
    failed = payload["error"] or next((r["error"] for r in payload["results"] if r.get("error")), None)
    said = {"id": call.id, "output": failed or payload["title"], "is_error": failed is not None}
    async with call.driven.state.db.transaction() as tx:
        _, attempt = await call.driven.hold(tx)
        both = [
            call_event(EventType.DESKTOP_ACTION, call.id, _ACTED, payload),
            call_event(EventType.TOOL_RESULT, call.id, _SAID, said),
        ]
        await call.driven.append(tx, attempt, both)
        await refer(tx, call.driven.run_id, kept)


async def _again(call: _Call, payload: dict[str, Any]) -> DesktopActed:
    """Answer a repeated call from the record."""
    if payload.get("error") and not payload.get("interrupted"):
        raise Conflict(str(payload["error"]), str(payload.get("detail", "")))
    return await _acted(call, payload)


async def _acted(call: _Call, payload: dict[str, Any]) -> DesktopActed:
    after = payload["after"] if call.body.screenshot is not None else None
    return DesktopActed(
        call_id=call.id,
        results=[ActionResult.model_validate(one) for one in payload["results"]],
        state=None if payload.get("state") is None else DesktopState.model_validate(payload["state"]),
        screenshot=None if after is None else await _picture(call, after),
        images=[await _picture(call, one) for one in payload["images"]],
        checks=payload.get("checks") or [],
        ending=payload.get("ending"),
        error=payload["error"],
        detail=str(payload.get("detail", "")),
        took_s=payload["took_s"],
    )


async def _picture(call: _Call, one: dict[str, Any]) -> RecordedPicture:
    picture = Picture.model_validate(one)
    data = None
    if call.body.inline:
        found = await asyncio.to_thread(call.driven.state.blobs.read_bytes, picture.sha256, MAX_IMAGE_BYTES)
        data = base64.b64encode(found).decode()
    return recorded(picture, call.driven.run_id, data)


def _fence(known: Sequence[Event]) -> int | None:
    """Return the fence of the worker that was asked before, if any was."""
    found = next((event.payload.get("fence") for event in known if event.type == EventType.TOOL_CALL), None)
    return found if isinstance(found, int) else None


def _whole(driven: Driven, event: Event) -> dict[str, Any]:
    """Return the payload, from the content store if it was too large for its row."""
    digest = event.payload.get("payload_blob")
    if not isinstance(digest, str):
        return event.payload
    return cast("dict[str, Any]", json.loads(driven.state.blobs.read_bytes(digest, _MOST_EVENT)))


def _intent(actions: Sequence[DesktopAction]) -> str:
    return next((action.intent for action in actions if action.intent), "")


def _plain_action(action: DesktopAction) -> DesktopAction:
    return action.model_copy(update={"raw": None, "intent": ""})


def _plain(action: DesktopAction) -> dict[str, Any]:
    return action.model_dump(mode="json", exclude_defaults=True, exclude={"raw"})


def _json(batch: Batch) -> dict[str, Any]:
    return batch.model_dump(mode="json", exclude_defaults=True)
