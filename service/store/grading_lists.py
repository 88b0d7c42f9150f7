"""The project's gradings as one list, over all runs."""

from sqlalchemy import func

from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import GradingRow
from service.store.tables import gradings

LISTING = Listing(
    gradings,
    GradingRow.of,
    sorts_by(
        created_at=Sort(gradings.c.created_at),
        score=Sort(func.coalesce(gradings.c.score, float("-inf")), float),
    ),
    {
        name: one_of(gradings.c[name])
        for name in ("run_id", "method", "plan", "state", "cause", "deliverable_digest", "queue", "regrade_id")
    },
    version=gradings.c.revision,
)
