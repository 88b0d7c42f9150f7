"""Names of people behind result tables, which never stand in them: what an export looks for before it leaves."""

from collections.abc import Sequence

from sqlalchemy import select

from service.store.database import Tx
from service.store.tables_campaigns import raters


async def rater_names(tx: Tx, project_id: str, campaign_ids: Sequence[str]) -> set[str]:
    """Return the names of the people that rate in these campaigns; models have none."""
    mine = (raters.c.project_id == project_id, raters.c.campaign_id.in_(list(campaign_ids)), raters.c.judge.is_(None))
    return set((await tx.execute(select(raters.c.name).where(*mine))).scalars())
