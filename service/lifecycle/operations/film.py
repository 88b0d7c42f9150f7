"""Operation ``film``: the pictures of a run's record as one mp4, a still for each batch, kept until the run is deleted."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from pydantic import Field, ValidationError

from service.desktop.film.captions import caption
from service.desktop.film.making import MOST_BYTES, MOST_STILLS, Film, Still, film_size, make_film
from service.domain.desktop import Picture, Size
from service.domain.errors import Conflict, Expected, NotFound, Unavailable
from service.domain.events import Event, EventType
from service.domain.limits import MIB
from service.domain.tasks import Strict
from service.lifecycle.operations.contract import Job, OperationContext
from service.store import blob_refs, events, runs
from service.store.database import Tx
from service.store.fences import lock_run

KIND = "film"
_PAGE = 500
_MOST_PAYLOAD_BYTES = 16 * MIB
_MOST_BATCHES = 200_000


class FilmSpec(Strict):
    run_id: str
    fps: int = Field(ge=1, le=10)
    """Stills a second."""
    captions: bool


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {run_id, sha256, size_bytes, width, height, stills, skipped, left_out, seconds}.

    Raises Conflict ``no_pictures``, NotFound (the run was deleted), Unavailable ``no_rooms``, ``room_failed``; JobCancelled.
    """
    spec = FilmSpec.model_validate(job.spec)
    if ctx.rooms is None:
        raise Unavailable("no_rooms", "this machine has no engine to make films with")
    shown = await _shown(ctx, job.project_id, spec.run_id)
    if not shown:
        raise Conflict("no_pictures", "the run's record has no pictures")
    size = film_size(Size(width=shown[0][0].width, height=shown[0][0].height), captions=spec.captions)
    chosen = shown[:: -(-len(shown) // MOST_STILLS)]
    stills = [Still(ctx.blobs.path(p.sha256), p.size_bytes, text if spec.captions else "") for p, text in chosen]
    await job.report(0, len(stills))

    async def told(done: int) -> None:
        await job.report(done, len(stills))

    take = partial(ctx.blobs.put_stream, limit=MOST_BYTES)
    film = await make_film(stills, size, spec.fps, ctx.rooms, take, told)
    if film is None:
        raise Conflict("no_pictures", "what the run's record has are no pictures")
    ctx.crash.reach("film.made")
    await ctx.in_transaction(partial(_keep, project_id=job.project_id, run_id=spec.run_id, film=film))
    return {
        "run_id": spec.run_id,
        "sha256": film.sha256,
        "size_bytes": film.size_bytes,
        **size.model_dump(),
        "stills": film.stills,
        "skipped": film.skipped,
        "left_out": len(shown) - len(chosen),
        "seconds": round(film.stills / spec.fps, 3),
    }


async def _shown(ctx: OperationContext, project_id: str, run_id: str) -> list[tuple[Picture, str]]:
    """Return the pictures in the order of the batches, each with its caption."""
    found: list[tuple[Picture, str]] = []
    after, number, began = 0, 0, None
    while number < _MOST_BATCHES:
        page = await ctx.in_transaction(partial(_page, project_id=project_id, run_id=run_id, after=after))
        for event in page:
            payload = await asyncio.to_thread(_payload, ctx, event)
            began = began or event.ts
            number += 1
            said = caption(number, (event.ts - began).total_seconds(), _list(payload.get("actions")))
            first = [] if found else [(picture, "") for picture in _pictures(payload, "before")]
            found += [*first, *((picture, said) for picture in _pictures(payload, "after"))]
        if len(page) < _PAGE:
            break
        after = page[-1].seq
    return found


async def _page(tx: Tx, *, project_id: str, run_id: str, after: int) -> Sequence[Event]:
    if await runs.get(tx, project_id, run_id) is None:
        raise NotFound("run_not_found", "the run was deleted")
    return await events.read(tx, run_id, after, _PAGE, [EventType.DESKTOP_ACTION])


def _payload(ctx: OperationContext, event: Event) -> dict[str, Any]:
    """Return the event's payload, also one that was too large for its row."""
    digest = event.payload.get("payload_blob")
    if not isinstance(digest, str):
        return event.payload
    try:
        whole: object = json.loads(ctx.blobs.read_bytes(digest, _MOST_PAYLOAD_BYTES))
    except (Expected, OSError, ValueError):
        return {}
    return cast(dict[str, Any], whole) if isinstance(whole, dict) else {}


def _pictures(payload: dict[str, Any], name: str) -> Iterator[Picture]:
    try:
        yield Picture.model_validate(payload.get(name))
    except ValidationError:
        return


def _list(value: object) -> Sequence[Any]:
    return cast(Sequence[Any], value) if isinstance(value, list) else []


async def _keep(tx: Tx, *, project_id: str, run_id: str, film: Film) -> None:
    """A run has one film: the newest."""
    await lock_run(tx, run_id)
    await blob_refs.drop_refs(tx, blob_refs.FILM, run_id)
    await blob_refs.add_refs(tx, project_id, blob_refs.FILM, run_id, [(film.sha256, film.size_bytes)])
