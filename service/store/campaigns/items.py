"""Items of campaigns: one deliverable or pair each, what it waits for, and what was decided."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, or_, select

from service.domain.errors import Invalid
from service.domain.ids import new_id
from service.domain.ratings import Purpose, Standing
from service.store.database import Tx
from service.store.paging import MAX_LIMIT
from service.store.rows import Json, Slice
from service.store.rows_campaigns import ItemRow
from service.store.tables import runs
from service.store.tables_campaigns import campaign_items, campaigns

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class NewItem:
    task_id: str
    run_id: str
    other_run_id: str | None = None
    categories: list[str] = field(default_factory=list[str])
    audited: bool = False
    gold: Json | None = None
    wanted: int = 0
    """Ratings that are asked for at first; 0 for gold items, and where a rule decides."""


@dataclass(frozen=True, slots=True)
class Delivery:
    digest: str
    files: int


async def insert_all(tx: Tx, project_id: str, campaign_id: str, new: Sequence[NewItem]) -> list[str]:
    """Insert items in their order; return their ids."""
    rows = [_values(project_id, campaign_id, position, item) for position, item in enumerate(new)]
    for start in range(0, len(rows), _BATCH):
        await tx.execute(campaign_items.insert(), rows[start : start + _BATCH])
    return [row["id"] for row in rows]


def _values(project_id: str, campaign_id: str, position: int, item: NewItem) -> dict[str, Any]:
    names = ("task_id", "run_id", "other_run_id", "categories", "audited", "gold", "wanted")
    return {
        "id": new_id("cit"),
        "project_id": project_id,
        "campaign_id": campaign_id,
        "position": position,
        "want": Purpose.RATING if item.wanted else None,
        **{name: getattr(item, name) for name in names},
    }


async def get(tx: Tx, item_id: str) -> ItemRow:
    """Return an item that is there. The caller checked the project."""
    return ItemRow.of((await tx.execute(select(campaign_items).where(campaign_items.c.id == item_id))).mappings().one())


async def page(tx: Tx, campaign_id: str, start: int, limit: int) -> Slice[ItemRow]:
    """Return items from a position on, gold ones included. ``Slice.next`` is (next position, campaign id).

    The caller checked the project. Raises Invalid("invalid_limit").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    c = campaign_items.c
    query = select(campaign_items).where(c.campaign_id == campaign_id, c.position >= start).order_by(c.position)
    found = [ItemRow.of(row) for row in (await tx.execute(query.limit(limit + 1))).mappings()]
    following = (str(found[limit].position), campaign_id) if len(found) > limit else None
    return Slice(found[:limit], following)


async def all_of(tx: Tx, campaign_id: str) -> list[ItemRow]:
    """Return every item, at most some ten thousand. The caller checked the project."""
    c = campaign_items.c
    query = select(campaign_items).where(c.campaign_id == campaign_id).order_by(c.position)
    return [ItemRow.of(row) for row in (await tx.execute(query)).mappings()]


async def deliveries(tx: Tx, campaign_id: str) -> dict[str, Delivery]:
    """Return what each run among the items delivered."""
    c = campaign_items.c
    either = or_(runs.c.id == c.run_id, runs.c.id == c.other_run_id)
    query = select(runs.c.id, runs.c.deliverable_digest, runs.c.deliverable_files).join(campaign_items, either)
    rows = await tx.execute(query.where(c.campaign_id == campaign_id).distinct())
    return {row.id: Delivery(row.deliverable_digest or "", row.deliverable_files) for row in rows}


async def settle(tx: Tx, item: ItemRow, standing: Standing, verdict: Json | None, grading_id: str | None) -> None:
    """Write where the item stands; ``verdict`` once it is decided. The caller holds the campaign's lock."""
    values: dict[str, Any] = {"want": standing.want, "wanted": standing.wanted}
    if verdict is not None and item.verdict is None:
        values |= {"verdict": verdict, "grading_id": grading_id, "decided_at": func.clock_timestamp()}
        more = campaigns.update().where(campaigns.c.id == item.campaign_id)
        await tx.execute(more.values(decided=campaigns.c.decided + 1))
    await tx.execute(campaign_items.update().where(campaign_items.c.id == item.id).values(values))


async def note_identifying(tx: Tx, item_id: str, found: list[Json]) -> None:
    await tx.execute(campaign_items.update().where(campaign_items.c.id == item_id).values(identifying=found))


async def unscanned(tx: Tx, campaign_id: str, limit: int) -> list[ItemRow]:
    """Return items at whose names and texts nobody has looked yet."""
    c = campaign_items.c
    query = select(campaign_items).where(c.campaign_id == campaign_id, c.identifying.is_(None))
    return [ItemRow.of(row) for row in (await tx.execute(query.order_by(c.position).limit(limit))).mappings()]
