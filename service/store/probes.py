"""Probes of judges: what was found of each case, while one is at work, and their reports."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.domain.ids import new_id
from service.domain.probes import Outcome, ProbeReport
from service.domain.verdicts import VerdictState
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_grading import ProbeRow
from service.store.tables import gradings
from service.store.tables_grading import judge_probe_outcomes, judge_probes

LISTING = Listing(
    judge_probes,
    ProbeRow.of,
    sorts_by(created_at=Sort(judge_probes.c.created_at)),
    {name: one_of(judge_probes.c[name]) for name in ("model", "plan")},
)


async def outcomes(tx: Tx, operation_id: str) -> dict[tuple[str, str], Outcome]:
    """Return what an earlier start of the operation found: (run, condition) → outcome."""
    c = judge_probe_outcomes.c
    rows = await tx.execute(select(c.run_id, c.condition, c.outcome).where(c.operation_id == operation_id))
    return {(row.run_id, row.condition): _outcome(row.run_id, row.outcome) for row in rows}


async def keep(tx: Tx, operation_id: str, condition: str, outcome: Outcome) -> None:
    """Keep what was found; what is there already stays."""
    values: dict[str, Any] = asdict(outcome)
    run_id = values.pop("run_id")
    row = {"operation_id": operation_id, "run_id": run_id, "condition": condition, "outcome": clean_json(values)}
    await tx.execute(insert(judge_probe_outcomes).values(row).on_conflict_do_nothing())


async def put(tx: Tx, project_id: str, operation_id: str, report: ProbeReport) -> ProbeRow:
    """Store the operation's report, once, and forget its cases."""
    values = {
        "id": new_id("prb"),
        "project_id": project_id,
        "operation_id": operation_id,
        "model": report.judge.model,
        "plan": report.plan,
        "report": clean_json(report.model_dump(mode="json")),
    }
    await tx.execute(insert(judge_probes).values(values).on_conflict_do_nothing())
    await tx.execute(judge_probe_outcomes.delete().where(judge_probe_outcomes.c.operation_id == operation_id))
    query = select(judge_probes).where(judge_probes.c.operation_id == operation_id)
    return ProbeRow.of((await tx.execute(query)).mappings().one())


async def get(tx: Tx, project_id: str, probe_id: str) -> ProbeRow | None:
    """Return the project's probe; null if there is none (or it is another project's)."""
    query = select(judge_probes).where(judge_probes.c.id == probe_id, judge_probes.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ProbeRow.of(row)


async def of_operation(tx: Tx, operation_id: str) -> ProbeRow | None:
    query = select(judge_probes).where(judge_probes.c.operation_id == operation_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ProbeRow.of(row)


async def passed(tx: Tx, run_ids: Sequence[str], method: str) -> dict[str, bool]:
    """Return of runs whether what the method decided of them in its newest round came to full score.

    Runs without such a verdict are left out; a round in which something is open or failed is none.
    """
    c = gradings.c
    mine = (c.run_id.in_(list(run_ids)), c.state != VerdictState.ABSTAINED, c.method == method)
    graded = func.bool_and(c.state == VerdictState.GRADED).label("graded")
    full = (func.sum(c.score) >= func.sum(c.max_score)).label("full")
    query = select(c.run_id, c.round, graded, full).where(*mine).group_by(c.run_id, c.round).order_by(c.run_id, c.round)
    return {row.run_id: bool(row.full) for row in await tx.execute(query) if row.graded}


def _outcome(run_id: str, kept: dict[str, Any]) -> Outcome:
    return Outcome(run_id, kept["fraction"], kept["answers"], kept["cause"], tuple(kept["models"]))
