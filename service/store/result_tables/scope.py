"""Which runs result tables are about, and what was decided of them as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from service.domain.benchmarks import BenchmarkHead
from service.domain.run_states import Flag
from service.store.database import Tx
from service.store.rows import RunFilter
from service.store.run_filters import conditions, of_benchmark
from service.store.tables import agents, runs, tasks
from service.store.tables_benchmarks import benchmarks
from service.store.tables_evaluations import evaluations

_NO_WORK = (Flag.CONTROL.value, "preflight")
"""Flags of runs that are no agent's work."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Runs of one project: of evaluations, of a benchmark, or of a filter; every one that is given must hold."""

    project_id: str
    evaluation_ids: tuple[str, ...] = ()
    benchmark_id: str | None = None
    where: RunFilter | None = None
    controls: bool = False
    """Altered-work controls and runs of preflights are among them."""
    hidden: bool = False
    """What quotes hidden assets is shown."""
    overlays: tuple[str, ...] = ()
    """Annotations, ``name@version``, whose values are among the tasks' facets."""


@dataclass(frozen=True, slots=True)
class EvaluationHead:
    """What reports need of an evaluation."""

    id: str
    name: str
    state: str
    plan: str
    seed: int
    revision: int
    resolved: dict[str, Any]
    benchmark_id: str | None
    benchmark: BenchmarkHead | None
    """Null: tasks without one."""

    @property
    def overlays(self) -> list[str]:
        """Return the annotations that its tasks were chosen by, ``name@version``."""
        return [str(one["name"]) for one in self.resolved.get("overlays", ())]


def scoped_runs(scope: Scope) -> Select[Any]:
    """Return the statement of the runs' ids."""
    found: list[ColumnElement[bool]] = [runs.c.project_id == scope.project_id]
    query = select(runs.c.id)
    if scope.evaluation_ids:
        found.append(runs.c.evaluation_id.in_(scope.evaluation_ids))
    if scope.benchmark_id is not None:
        found.append(of_benchmark(runs.c.task_id)((scope.benchmark_id,)))
    if scope.where is not None:
        query = query.join(tasks, tasks.c.id == runs.c.task_id).join(agents, agents.c.id == runs.c.agent_id)
        found += conditions(scope.where)
    if not scope.controls:
        found.append(~runs.c.flags.overlap(list(_NO_WORK)))
    return query.where(*found)


async def heads(tx: Tx, project_id: str, evaluation_ids: Sequence[str]) -> list[EvaluationHead]:
    """Return those of the evaluations that are the project's, in the order in which they are named."""
    e, b = evaluations.c, benchmarks.c
    query = (
        select(e.id, e.name, e.state, e.plan, e.seed, e.revision, e.resolved, e.benchmark_id, b.manifest)
        .outerjoin(benchmarks, (b.id == e.benchmark_id) & (b.project_id == e.project_id))
        .where(e.project_id == project_id, e.id.in_(list(evaluation_ids)))
    )
    found = {row["id"]: row for row in (await tx.execute(query)).mappings()}
    return [_head(dict(found[id_])) for id_ in dict.fromkeys(evaluation_ids) if id_ in found]


def _head(row: dict[str, Any]) -> EvaluationHead:
    manifest = row.pop("manifest")
    return EvaluationHead(**row, benchmark=None if manifest is None else BenchmarkHead.model_validate(manifest))
