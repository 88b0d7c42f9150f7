"""What is kept of a batch on a run's screen: its pictures in the content store, and one event that names them.

The same for our own loops (``loop_desktop``), for remote drivers and for people. Pictures are known by their content: one
that nothing changed on is stored once, however many batches refer to it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from service.desktop.performed import Encoded, Performed
from service.domain.desktop import DesktopAction, Picture
from service.store import blob_refs
from service.store.database import Tx
from service.store.events import BlobSink
from service.store.fences import lock_run

By = Literal["loop", "remote", "person"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A batch's pictures, durable in the content store."""

    before: Picture | None = None
    after: Picture | None = None
    images: Sequence[Picture] = ()
    """Of its ``screenshot`` and ``zoom`` actions."""

    def all(self) -> Sequence[Picture]:
        return [p for p in (self.before, *self.images, self.after) if p is not None]


async def keep_pictures(blobs: BlobSink, performed: Performed, *, before: Picture | None = None) -> Kept:
    """Store its pictures. ``before``: the last one that is known, for a batch that none was taken before."""
    given = (performed.before, performed.shot, *performed.images)
    first, after, *images = await asyncio.to_thread(_store, blobs, given)
    return Kept(first or before, after, [p for p in images if p is not None])


async def refer(tx: Tx, run_id: str, kept: Kept) -> None:
    """Note that the run needs these pictures: they are deleted with it. Repeating it changes nothing."""
    pictures = {p.sha256: p.size_bytes for p in kept.all()}
    if pictures:
        project_id: str = (await lock_run(tx, run_id))["project_id"]
        await blob_refs.add_refs(tx, project_id, blob_refs.PICTURE, run_id, pictures.items())


def desktop_payload(
    id: str, by: By, actions: Sequence[DesktopAction], performed: Performed, kept: Kept, *, interrupted: bool = False
) -> dict[str, Any]:
    """Return the payload of the event ``desktop.action``. ``id`` is the tool call's that the batch was made for."""
    state = performed.state
    payload: dict[str, Any] = {
        "id": id,
        "by": by,
        "actions": [a.model_dump(mode="json", exclude_defaults=True) for a in actions],
        "results": [r.model_dump(mode="json", exclude_defaults=True) for r in performed.results],
        "before": _json(kept.before),
        "after": _json(kept.after),
        "images": [_json(p) for p in kept.images],
        "title": "" if state is None else state.title,
        "error": performed.error,
        "took_s": round(performed.took_s, 4),
    }
    if state is not None and state.windows:
        payload["windows"] = [w.title for w in state.windows]
    if performed.detail:
        payload["detail"] = performed.detail
    return {**payload, "interrupted": True} if interrupted else payload


def _store(blobs: BlobSink, given: Sequence[Encoded | None]) -> list[Picture | None]:
    return [None if one is None else _picture(blobs, one) for one in given]


def _picture(blobs: BlobSink, one: Encoded) -> Picture:
    digest, size = blobs.store_bytes(one.data)
    return Picture(sha256=digest, format=one.format, width=one.width, height=one.height, size_bytes=size)


def _json(picture: Picture | None) -> dict[str, Any] | None:
    return None if picture is None else picture.model_dump(mode="json")
