"""Images that projects brought, and what hosts are to have of them. Use it as ``from service.store import images``."""

from typing import Any

from sqlalchemy import case, exists, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.domain.images import ImageContent, ImageState
from service.domain.run_states import Phase
from service.store import credentials
from service.store.blob_refs import add_refs, drop_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.notifications import IMAGES
from service.store.paging import Sort
from service.store.phases import notify
from service.store.rows import Json
from service.store.rows_models import ImageRow
from service.store.tables import runs
from service.store.tables_models import images

OWNER = "image"
"""Kind of the owner of an image's blobs."""
MOST_KEPT = 500
"""Images that hosts look after; of more, those that queued runs need and the newest."""
LISTING = Listing(
    images,
    ImageRow.of,
    sorts_by(created_at=Sort(images.c.created_at), name=Sort(images.c.name, str)),
    {"name": one_of(images.c.name), "state": one_of(images.c.state)},
    version=images.c.revision,
)


async def create(
    tx: Tx, project_id: str, name: str, *, reference: str | None = None, archive: str | None = None, private: bool
) -> tuple[ImageRow, bool]:
    """Return the image and whether it is new; the same one again is found. Raises Conflict("image_exists")."""
    values = {
        "id": new_id("img"),
        "project_id": project_id,
        "name": name,
        "reference": reference,
        "archive": archive,
        "state": ImageState.PENDING,
        "private": private,
    }
    row = (await tx.execute(insert(images).values(values).on_conflict_do_nothing().returning(images))).mappings()
    made = row.one_or_none()
    if made is not None:
        return ImageRow.of(made), True
    found = await find(tx, project_id, name)
    if found is None or (found.reference, found.archive) != (reference, archive):
        raise Conflict("image_exists", f"there is another image {name!r}: delete it, or take another name")
    return found, False


async def get(tx: Tx, project_id: str, image_id: str) -> ImageRow | None:
    """Return the project's image; null if there is none (or it is another project's)."""
    return await _one(tx, images.c.project_id == project_id, images.c.id == image_id)


async def find(tx: Tx, project_id: str, name: str) -> ImageRow | None:
    """Return the project's image of this name."""
    return await _one(tx, images.c.project_id == project_id, images.c.name == name)


async def meant(tx: Tx, project_id: str, reference: str) -> ImageRow | None:
    """Return the project's image of this id or name."""
    named = or_(images.c.id == reference, images.c.name == reference)
    return await _one(tx, images.c.project_id == project_id, named)


async def load(tx: Tx, image_id: str) -> ImageRow | None:
    """Return an image of any project, for hosts and operations."""
    return await _one(tx, images.c.id == image_id)


async def imported_by(tx: Tx, image_id: str, operation_id: str) -> ImageRow:
    """Note the operation that imports an image."""
    query = images.update().where(images.c.id == image_id).values(operation_id=operation_id)
    return ImageRow.of((await tx.execute(query.returning(images))).mappings().one())


async def keep(tx: Tx, image_id: str, content: ImageContent, report: Json) -> bool:
    """Say what an image is made of: it is ready, and hosts load it. False if it was deleted or has ended already.

    Its blobs are durable. What its registry's secret was for is done, so that is forgotten.
    """
    columns = {"state": ImageState.READY, "content": content.model_dump(mode="json"), "report": clean_json(report)}
    row = await _conclude(tx, image_id, columns)
    if row is None:
        return False
    sizes = {content.config: content.config_bytes, **{one.sha256: one.size_bytes for one in content.layers}}
    await add_refs(tx, row.project_id, OWNER, image_id, sizes.items())
    await notify(tx, IMAGES, image_id)
    return True


async def refuse(tx: Tx, image_id: str, report: Json) -> None:
    """Say why an image is not taken."""
    await _conclude(tx, image_id, {"state": ImageState.REFUSED, "report": clean_json(report)})


async def delete(tx: Tx, project_id: str, image_id: str) -> bool:
    """Delete an image that no run needs any more; hosts remove it. False if there is none.

    Raises Conflict("image_in_use").
    """
    query = select(images).where(images.c.project_id == project_id, images.c.id == image_id).with_for_update()
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        return False
    needs = or_(runs.c.environment == image_id, runs.c.kit == image_id)
    open_run = select(runs.c.id).where(runs.c.project_id == project_id, needs, runs.c.phase != Phase.DONE).limit(1)
    user = (await tx.execute(open_run)).scalar_one_or_none()
    if user is not None:
        raise Conflict("image_in_use", f"{user} needs it", user=user)
    await tx.execute(images.delete().where(images.c.id == image_id))
    await drop_refs(tx, OWNER, image_id)
    if row["credential_id"] is not None:
        await credentials.drop(tx, row["credential_id"])
    await notify(tx, IMAGES, image_id)
    return True


async def wanted(tx: Tx) -> list[ImageRow]:
    """Return what hosts are to have: first what waiting runs need, then the newest; at most 500."""
    queued = exists().where(
        runs.c.phase.in_((Phase.QUEUED, Phase.HELD)), or_(runs.c.environment == images.c.id, runs.c.kit == images.c.id)
    )
    query = select(images).where(images.c.state == ImageState.READY)
    query = query.order_by(case((queued, 0), else_=1), images.c.created_at.desc(), images.c.id).limit(MOST_KEPT)
    return [ImageRow.of(row) for row in (await tx.execute(query)).mappings()]


async def _one(tx: Tx, *where: Any) -> ImageRow | None:
    row = (await tx.execute(select(images).where(*where).limit(1))).mappings().one_or_none()
    return None if row is None else ImageRow.of(row)


async def _conclude(tx: Tx, image_id: str, columns: dict[str, Any]) -> ImageRow | None:
    pending = (images.c.id == image_id, images.c.state == ImageState.PENDING)
    row = (await tx.execute(select(images).where(*pending).with_for_update())).mappings().one_or_none()
    if row is None:
        return None
    if row["credential_id"] is not None:
        await credentials.drop(tx, row["credential_id"])
    changed = {**columns, "credential_id": None, "revision": images.c.revision + 1}
    await tx.execute(images.update().where(images.c.id == image_id).values(changed))
    return ImageRow.of(row)
