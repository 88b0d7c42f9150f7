"""What a regrade's gradings say, run by run, beside what the runs had before."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import RowMapping, func, select

from service.domain.combining import Counted, combined
from service.domain.grading_plans import Combine
from service.domain.run_states import Outcome
from service.domain.verdicts import ENDED_VERDICTS, outcome_of
from service.store.combining import counted_of
from service.store.database import Tx
from service.store.tables import gradings
from service.store.tables_grading import regrade_runs
from service.store.tables_models import model_requests


@dataclass(frozen=True, slots=True)
class Pair:
    """Fractions of one run; null where there is no score."""

    run_id: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Spending:
    usd: Decimal | None
    """Null while no cost is known."""
    requests: int
    unknown: int
    """Of them, without a known cost."""
    input_tokens: int
    output_tokens: int


async def pairs(tx: Tx, regrade_id: str, rule: Combine, *, sampled_only: bool) -> list[Pair]:
    """Return every run of the regrade (or of its sample) in order; overrides of its gradings count."""
    c, g = regrade_runs.c, gradings.c
    wanted = [c.regrade_id == regrade_id, *([c.sampled] if sampled_only else [])]
    rows = (await tx.execute(select(c.run_id, c.before).where(*wanted).order_by(c.position))).all()
    query = select(gradings).where(g.regrade_id == regrade_id, g.primary.is_(True))
    by_run: dict[str, list[RowMapping]] = defaultdict(list)
    for row in (await tx.execute(query.order_by(g.created_at, g.id))).mappings():
        by_run[row["run_id"]].append(row)
    wanted_rows = [by_run.get(run_id, []) for run_id, _ in rows]
    counted = await counted_of(tx, [row for some in wanted_rows for row in some])
    after = [_fraction([counted[row["id"]] for row in some], rule) for some in wanted_rows]
    return [Pair(run_id, before, now) for (run_id, before), now in zip(rows, after, strict=True)]


def _fraction(counted: list[Counted], rule: Combine) -> float | None:
    states = [c.state for c in counted]
    if not ENDED_VERDICTS.issuperset(states) or outcome_of(states) is not Outcome.GRADED:
        return None
    score, most = combined(rule, counted)
    return score / most if most else None


async def spending(tx: Tx, regrade_id: str) -> Spending:
    """Return what judges took for the regrade so far, of what the ledger has settled."""
    c = model_requests.c
    mine = select(gradings.c.id).where(gradings.c.regrade_id == regrade_id)
    read = c.input_tokens + c.cached_input_tokens + c.cache_write_tokens
    query = select(
        func.sum(c.cost_usd).label("usd"),
        func.count().label("requests"),
        func.count().filter(c.cost_usd.is_(None)).label("unknown"),
        func.coalesce(func.sum(read), 0).label("read"),
        func.coalesce(func.sum(c.output_tokens), 0).label("output"),
    ).where(c.subject.in_(mine), c.state == "finished")
    row = (await tx.execute(query)).mappings().one()
    return Spending(row["usd"], row["requests"], row["unknown"], int(row["read"]), int(row["output"]))
