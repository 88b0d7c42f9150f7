"""Assignments: an item with a rater, by a lease that runs out, and the rating that came of it.

Everything that changes one holds the campaign's lock, so that no item gets more ratings than it waits for. A lease that
is over needs no job: from then on the item is there for others, and for this rater while nobody took it.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, exists, extract, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Invalid
from service.domain.ids import new_id
from service.domain.ratings import Purpose
from service.domain.strata import place
from service.store.database import Tx
from service.store.paging import MAX_LIMIT
from service.store.rows import Json, Slice
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow
from service.store.tables_campaigns import campaign_items, raters
from service.store.tables_campaigns import rating_assignments as assignments

_NOW = func.clock_timestamp()
_LIVE = and_(assignments.c.state == "leased", assignments.c.leased_until > _NOW)
_ELAPSED = func.greatest(extract("epoch", _NOW - assignments.c.started_at), 0)
_HELD_S = func.greatest(extract("epoch", func.least(_NOW, assignments.c.leased_until) - assignments.c.started_at), 0)
"""Of a lease that ends now, or has run out."""


async def held(tx: Tx, rater_id: str) -> AssignmentRow | None:
    """Return what the rater has in hand just now."""
    return await _one(tx, assignments.c.rater_id == rater_id, _LIVE)


async def next_item(tx: Tx, campaign: CampaignRow, rater: RaterRow) -> ItemRow | None:
    """Return an item that waits for a rating which this rater can give; what it gave back comes last.

    The order is random and each rater's own. Null: there is none (now).
    """
    i = campaign_items.c
    mine = assignments.alias("mine")
    done = exists().where(
        mine.c.item_id == i.id, mine.c.rater_id == rater.id, mine.c.state.in_(("submitted", "skipped"))
    )
    back = exists().where(mine.c.item_id == i.id, mine.c.rater_id == rater.id)
    query = select(campaign_items).where(
        i.campaign_id == campaign.id, i.gold.is_(None), i.want.is_not(None), ~done, i.wanted > _taken(rater.id)
    )
    if rater.categories:
        query = query.where(i.categories.overlap(rater.categories))
    order = func.md5(func.concat(place(campaign.spec.seed, rater.pseudonym), i.position))
    row = (await tx.execute(query.order_by(back, order).limit(1))).mappings().one_or_none()
    return None if row is None else ItemRow.of(row)


def _taken(rater_id: str) -> Any:
    """How many of the wanted ratings others have given, or have in hand."""
    a = assignments.alias("taken")
    live = and_(a.c.state == "leased", a.c.leased_until > _NOW)
    mine = (a.c.item_id == campaign_items.c.id, a.c.purpose == campaign_items.c.want, a.c.rater_id != rater_id)
    taken = select(func.count()).select_from(a).where(*mine, or_(a.c.state == "submitted", live))
    return taken.correlate(campaign_items).scalar_subquery()


async def next_gold(tx: Tx, campaign: CampaignRow, rater: RaterRow) -> ItemRow | None:
    """Return a gold item that the rater has not answered yet."""
    i, a = campaign_items.c, assignments.c
    done = exists().where(a.item_id == i.id, a.rater_id == rater.id, a.state.in_(("submitted", "skipped")))
    query = select(campaign_items).where(i.campaign_id == campaign.id, i.gold.is_not(None), ~done)
    order = func.md5(func.concat(place(campaign.spec.seed, rater.pseudonym), i.position))
    row = (await tx.execute(query.order_by(order).limit(1))).mappings().one_or_none()
    return None if row is None else ItemRow.of(row)


async def lease(tx: Tx, campaign: CampaignRow, rater: RaterRow, item: ItemRow, purpose: Purpose) -> AssignmentRow:
    """Give the item to the rater; one that had it before gets its former assignment again."""
    sides = place(campaign.spec.seed, "sides", rater.pseudonym, item.position)
    values = {
        "purpose": purpose,
        "state": "leased",
        "leased_until": _NOW + func.make_interval(0, 0, 0, 0, 0, 0, campaign.spec.lease_s),
        "started_at": _NOW,
    }
    key = {
        "id": new_id("asg"),
        "project_id": campaign.project_id,
        "campaign_id": campaign.id,
        "item_id": item.id,
        "rater_id": rater.id,
        "swapped": item.other_run_id is not None and int(sides[:8], 16) % 2 == 1,
    }
    again = {**values, "wall_s": case((assignments.c.state == "leased", assignments.c.wall_s + _HELD_S),
                                      else_=assignments.c.wall_s)}  # fmt: skip
    query = insert(assignments).values({**key, **values})
    query = query.on_conflict_do_update(constraint="uq_rating_assignments_once", set_=again).returning(assignments)
    return AssignmentRow.of((await tx.execute(query)).mappings().one())


async def of_rater(tx: Tx, assignment_id: str, rater_id: str | None, token_id: str | None) -> AssignmentRow | None:
    """Return the assignment if it is this rater's, or that of a rater that this token is."""
    who = assignments.c.rater_id == rater_id if rater_id else raters.c.token_id == token_id
    query = select(assignments).join(raters, raters.c.id == assignments.c.rater_id)
    query = query.where(assignments.c.id == assignment_id, who, raters.c.state == "active")
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else AssignmentRow.of(row)


async def get(tx: Tx, campaign_id: str, assignment_id: str) -> AssignmentRow | None:
    return await _one(tx, assignments.c.id == assignment_id, assignments.c.campaign_id == campaign_id)


async def load(tx: Tx, assignment_id: str) -> AssignmentRow:
    found = await _one(tx, assignments.c.id == assignment_id)
    assert found is not None
    return found


async def is_live(tx: Tx, assignment_id: str) -> bool:
    return await _one(tx, assignments.c.id == assignment_id, _LIVE) is not None


async def others(tx: Tx, item: ItemRow, rater_id: str) -> int:
    """Count the ratings of what the item waits for that others have given or have in hand."""
    query = select(_taken(rater_id)).select_from(campaign_items).where(campaign_items.c.id == item.id)
    return (await tx.execute(query)).scalar_one()


async def keep(tx: Tx, campaign: CampaignRow, assignment_id: str, active_s: float) -> AssignmentRow:
    """Prolong the lease and note the active time so far, at most what has passed."""
    until = _NOW + func.make_interval(0, 0, 0, 0, 0, 0, campaign.spec.lease_s)
    return await _write(tx, assignment_id, leased_until=until, active_s=_active(active_s))


async def submit(
    tx: Tx, campaign: CampaignRow, assignment_id: str, rating: Json, digest: str, client_id: str, active_s: float
) -> AssignmentRow:
    """Write the rating with the instruction that was shown."""
    return await _write(
        tx,
        assignment_id,
        state="submitted",
        rating=rating,
        rating_digest=digest,
        client_id=client_id,
        active_s=_active(active_s),
        wall_s=case((assignments.c.state == "leased", assignments.c.wall_s + _ELAPSED), else_=assignments.c.wall_s),
        instruction_version=campaign.instruction_version,
        instruction_sha256=campaign.instruction_sha256,
        submitted_at=_NOW,
        leased_until=None,
    )


async def end(tx: Tx, assignment_id: str, state: str, reason: str | None = None) -> AssignmentRow:
    """Take the item back from the rater: ``skipped`` for good, ``released`` until it asks for more."""
    wall = assignments.c.wall_s + _HELD_S
    return await _write(tx, assignment_id, state=state, reason=reason, wall_s=wall, leased_until=None)


async def release_all(tx: Tx, rater_id: str) -> int:
    """Hand back everything that the rater has in hand; return how many items that are."""
    query = assignments.update().where(assignments.c.rater_id == rater_id, assignments.c.state == "leased")
    values = {"state": "released", "wall_s": assignments.c.wall_s + _HELD_S, "leased_until": None}
    return (await tx.execute(query.values(values))).rowcount


async def submitted_of_item(tx: Tx, item_id: str) -> list[AssignmentRow]:
    """Return the item's ratings in the order in which they came."""
    return await _several(tx, assignments.c.item_id == item_id, assignments.c.state == "submitted")


async def of_campaign(tx: Tx, campaign_id: str) -> list[AssignmentRow]:
    """Return all assignments. The caller checked the project."""
    return await _several(tx, assignments.c.campaign_id == campaign_id)


async def of_rater_all(tx: Tx, rater_id: str) -> list[AssignmentRow]:
    return await _several(tx, assignments.c.rater_id == rater_id)


async def golds_of(tx: Tx, rater_id: str) -> list[AssignmentRow]:
    """Return what the rater said, or did not, of gold items."""
    ended = assignments.c.state.in_(("submitted", "skipped"))
    return await _several(tx, assignments.c.rater_id == rater_id, assignments.c.purpose == Purpose.GOLD, ended)


async def page(
    tx: Tx, campaign_id: str, after: str | None, limit: int, states: Sequence[str]
) -> Slice[tuple[AssignmentRow, ItemRow, RaterRow]]:
    """Return assignments in the order of their ids, with item and rater. ``Slice.next`` is (last id, campaign id).

    The caller checked the project. Raises Invalid("invalid_limit").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    query = select(assignments).where(assignments.c.campaign_id == campaign_id, assignments.c.state.in_(states))
    if after is not None:
        query = query.where(assignments.c.id > after)
    rows = (await tx.execute(query.order_by(assignments.c.id).limit(limit + 1))).mappings()
    found = [AssignmentRow.of(row) for row in rows]
    items, people = await _items(tx, found), await _raters(tx, found)
    shown = [(a, items[a.item_id], people[a.rater_id]) for a in found[:limit]]
    return Slice(shown, (found[limit - 1].id, campaign_id) if len(found) > limit else None)


async def _items(tx: Tx, found: Sequence[AssignmentRow]) -> dict[str, ItemRow]:
    query = select(campaign_items).where(campaign_items.c.id.in_({a.item_id for a in found}))
    return {row["id"]: ItemRow.of(row) for row in (await tx.execute(query)).mappings()}


async def _raters(tx: Tx, found: Sequence[AssignmentRow]) -> dict[str, RaterRow]:
    query = select(raters).where(raters.c.id.in_({a.rater_id for a in found}))
    return {row["id"]: RaterRow.of(row) for row in (await tx.execute(query)).mappings()}


def _active(reported: float) -> Any:
    passed = assignments.c.wall_s + _ELAPSED
    return func.least(func.greatest(assignments.c.active_s, reported), passed)


async def _write(tx: Tx, assignment_id: str, **values: Any) -> AssignmentRow:
    query = assignments.update().where(assignments.c.id == assignment_id).values(values).returning(assignments)
    return AssignmentRow.of((await tx.execute(query)).mappings().one())


async def _one(tx: Tx, *where: ColumnElement[bool]) -> AssignmentRow | None:
    row = (await tx.execute(select(assignments).where(*where).limit(1))).mappings().one_or_none()
    return None if row is None else AssignmentRow.of(row)


async def _several(tx: Tx, *where: ColumnElement[bool]) -> list[AssignmentRow]:
    query = select(assignments).where(*where).order_by(assignments.c.submitted_at, assignments.c.id)
    return [AssignmentRow.of(row) for row in (await tx.execute(query)).mappings()]
