"""Preferences: what the ratings of one pair give its first deliverable."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Invalid
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.paging import MAX_LIMIT
from service.store.rows import Slice
from service.store.rows_campaigns import ItemRow, PreferenceRow
from service.store.tables import runs
from service.store.tables_campaigns import preferences


async def put(tx: Tx, item: ItemRow, value: float, choices: list[str], combination: str) -> None:
    """Write the pair's preference; one that is there stays."""
    ids = [item.run_id, *([item.other_run_id] if item.other_run_id else [])]
    agents = {
        row.id: row.agent_id for row in await tx.execute(select(runs.c.id, runs.c.agent_id).where(runs.c.id.in_(ids)))
    }
    values: dict[str, Any] = {
        "id": new_id("prf"),
        "project_id": item.project_id,
        "campaign_id": item.campaign_id,
        "item_id": item.id,
        "task_id": item.task_id,
        "first_run_id": item.run_id,
        "second_run_id": item.other_run_id,
        "first_agent_id": agents[item.run_id],
        "second_agent_id": agents.get(item.other_run_id or ""),
        "value": value,
        "choices": choices,
        "combination": combination,
    }
    await tx.execute(insert(preferences).values(values).on_conflict_do_nothing())


async def page(tx: Tx, campaign_id: str, after: str | None, limit: int) -> Slice[PreferenceRow]:
    """Return preferences in the order of their ids. ``Slice.next`` is (last id, campaign id).

    The caller checked the project. Raises Invalid("invalid_limit").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    query = select(preferences).where(preferences.c.campaign_id == campaign_id)
    if after is not None:
        query = query.where(preferences.c.id > after)
    found = [
        PreferenceRow.of(row)
        for row in (await tx.execute(query.order_by(preferences.c.id).limit(limit + 1))).mappings()
    ]
    return Slice(found[:limit], (found[limit - 1].id, campaign_id) if len(found) > limit else None)
