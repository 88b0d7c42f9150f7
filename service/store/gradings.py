"""Gradings: which methods judge a run's deliverable, and what they decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import RowMapping, func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.domain.errors import NotFound
from service.domain.events import EventType, NewEvent
from service.domain.grading_plans import GradingQueue
from service.domain.ids import new_id
from service.domain.tasks import GraderSpec, canonical_digest
from service.domain.verdicts import ENDED_VERDICTS, Verdict, VerdictState
from service.domain.webhooks import HookEvent
from service.store import clock, criteria, events
from service.store.announcements import announce
from service.store.combining import combine
from service.store.database import Tx
from service.store.evaluations.watching import JUDGES_BUDGET, JUDGES_WAIT_S, judges_wait, sum_again
from service.store.fences import lock_run
from service.store.notifications import GRADINGS, RUNS
from service.store.phases import notify
from service.store.rows import GradingRow, RunRow
from service.store.tables import gradings, runs


@dataclass(frozen=True, slots=True)
class Occasion:
    """Why gradings are made: under which plan, how soon, within which regrade."""

    plan: str
    priority: int = 0
    regrade_id: str | None = None


async def enqueue(
    tx: Tx,
    run: RunRow,
    specs: Sequence[GraderSpec],
    round: int = 1,
    primary: bool = True,
    *,
    versions: Mapping[str, str] | None = None,
    queues: Mapping[str, GradingQueue] | None = None,
    occasion: Occasion | None = None,
) -> list[GradingRow]:
    """Add a pending grading per spec and return all of them; what is there already stays as it is.

    ``versions`` gives the version of each method (default ``1``), ``queues`` who decides (default ``rooms``).
    ``run.deliverable_digest`` must be set. Wakes graders. The run's phase is the caller's to change.
    """
    if run.deliverable_digest is None:
        raise ValueError(f"{run.id} has no sealed deliverable to grade")
    await lock_run(tx, run.id)
    why = occasion or Occasion(run.plan)
    rows: list[GradingRow] = []
    for spec in specs:
        key = {
            "run_id": run.id,
            "deliverable_digest": run.deliverable_digest,
            "method": spec.method,
            "method_version": (versions or {}).get(spec.method, "1"),
            "settings_digest": canonical_digest(spec.settings),
            "round": round,
            "vote": 1,
        }
        rest = {
            "id": new_id("grd"),
            "project_id": run.project_id,
            "plan": why.plan,
            "primary": primary,
            "queue": (queues or {}).get(spec.method, "rooms"),
            "priority": why.priority,
            "regrade_id": why.regrade_id,
        }
        values = {**key, **rest, "settings": clean_json(spec.settings), "state": VerdictState.PENDING}
        await tx.execute(insert(gradings).values(values).on_conflict_do_nothing())
        query = select(gradings).where(*(gradings.c[name] == value for name, value in key.items()))
        rows.append(GradingRow.of((await tx.execute(query)).mappings().one()))
    for row in rows:
        await notify(tx, GRADINGS, f"{row.id} {row.state}")
    return rows


async def get(tx: Tx, project_id: str, grading_id: str) -> GradingRow | None:
    """Return the project's grading; null if there is none (or it is another project's)."""
    query = select(gradings).where(gradings.c.id == grading_id, gradings.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else (await _with_criteria(tx, [GradingRow.of(row)]))[0]


async def list_for_run(tx: Tx, run_id: str) -> list[GradingRow]:
    """Return all gradings of a run, by round. The caller checked the project."""
    query = select(gradings).where(gradings.c.run_id == run_id)
    rows = await tx.execute(query.order_by(gradings.c.round, gradings.c.created_at, gradings.c.id))
    return await _with_criteria(tx, [GradingRow.of(row) for row in rows.mappings()])


async def _with_criteria(tx: Tx, rows: list[GradingRow]) -> list[GradingRow]:
    ids = [row.id for row in rows]
    first, totals = await criteria.first(tx, ids), await criteria.totals(tx, ids)
    return [replace(r, criteria=first.get(r.id, []), criteria_total=totals.get(r.id, 0)) for r in rows]


async def claim_start(tx: Tx, grading_id: str) -> GradingRow | None:
    """Mark a try: pending or (after a crash) grading → grading, tries + 1. Null when it has ended already, or is not due."""
    grading = await _locked(tx, grading_id)
    if grading is None or grading["state"] in ENDED_VERDICTS:
        return None
    due = grading["not_before"]
    if due is not None and due > (await clock.now(tx)):
        return None
    if grading["queue"] == "judges" and await judges_wait(tx, grading["run_id"]):
        await tx.execute(gradings.update().where(gradings.c.id == grading_id).values(_LATER))
        return None
    started = func.coalesce(gradings.c.started_at, func.clock_timestamp())
    values = {"state": VerdictState.GRADING, "tries": gradings.c.tries + 1, "started_at": started, "not_before": None}
    query = gradings.update().where(gradings.c.id == grading_id).values(values).returning(gradings)
    row = (await tx.execute(query)).mappings().one()
    if row["primary"]:
        waits = (runs.c.plan == row["plan"], runs.c.verdict_state == VerdictState.PENDING)
        changed = await tx.execute(runs.update().where(runs.c.id == row["run_id"], *waits).values(_GRADING))
        if changed.rowcount:
            await notify(tx, RUNS, row["run_id"])
    return GradingRow.of(row)


async def finish(tx: Tx, grading_id: str, verdict: Verdict) -> GradingRow:
    """Write the verdict; a grading that has ended keeps the one it has.

    With the last one that counts for the run's verdict the run is done (store.combining). Raises NotFound("grading_not_found").
    """
    grading = await _locked(tx, grading_id)
    if grading is None:
        raise NotFound("grading_not_found", f"no grading {grading_id}")
    if grading["state"] in ENDED_VERDICTS:
        return GradingRow.of(grading)
    values = {
        "state": verdict.state,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "cause": verdict.cause,
        "detail": clean_json(verdict.detail),
        "graded_at": func.clock_timestamp(),
    }
    query = gradings.update().where(gradings.c.id == grading_id).values(values).returning(gradings)
    row = (await tx.execute(query)).mappings().one()
    await criteria.replace_all(tx, grading_id, verdict.criteria)
    run = await lock_run(tx, row["run_id"])
    await _log_verdict(tx, run, row)
    await _announce(tx, run, row)
    await notify(tx, GRADINGS, f"{grading_id} {verdict.state}")
    if row["queue"] == "judges":
        await sum_again(tx, run["evaluation_id"])
    if row["primary"]:
        await combine(tx, await lock_run(tx, row["run_id"]), row["plan"])
    return GradingRow.of(row)


async def _locked(tx: Tx, grading_id: str) -> RowMapping | None:
    """Lock the run, then the grading (the one lock order)."""
    run_id = (await tx.execute(select(gradings.c.run_id).where(gradings.c.id == grading_id))).scalar_one_or_none()
    if run_id is None:
        return None
    await lock_run(tx, run_id)
    query = select(gradings).where(gradings.c.id == grading_id).with_for_update()
    return (await tx.execute(query)).mappings().one_or_none()


async def _log_verdict(tx: Tx, run: RowMapping, row: RowMapping) -> None:
    payload = {name: row[name] for name in ("method", "state", "score", "max_score", "cause", "round")}
    payload["grading_id"] = row["id"]
    event = NewEvent(EventType.VERDICT, payload, f"grading:{row['id']}", row["revision"], row["graded_at"])
    await events.append(tx, run["id"], run["attempt"], None, [event])


async def _announce(tx: Tx, run: RowMapping, row: RowMapping) -> None:
    names = (
        "id",
        "run_id",
        "method",
        "method_version",
        "plan",
        "primary",
        "round",
        "vote",
        "state",
        "score",
        "max_score",
    )
    compact = {name: row[name] for name in (*names, "cause")} | {"labels": run["labels"]}
    await announce(tx, row["project_id"], HookEvent.GRADING_DONE, compact, run["labels"])


# Whose judges have no budget left: it waits, and has lost nothing by it.
_LATER = {
    "state": VerdictState.PENDING,
    "cause": JUDGES_BUDGET,
    "not_before": func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, JUDGES_WAIT_S),
    "started_at": None,
}
_GRADING = {
    "verdict_state": VerdictState.GRADING,
    "revision": runs.c.revision + 1,
    "updated_at": func.clock_timestamp(),
}
