"""Surveys from the client's side: which tasks, started, cancelled."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from service.domain.annotations import overlays_of
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.evaluation_plans import Item, select
from service.domain.evaluations import TaskSelection
from service.domain.operations import ENDED_OPERATIONS
from service.domain.surveys import SurveyState
from service.store import clock, operations, overlays
from service.store.database import Tx
from service.store.evaluations import items
from service.store.surveys import Surveys

_STARTABLE = frozenset({SurveyState.DRAFT, SurveyState.STOPPED, SurveyState.CANCELLED})


class Survey(Protocol):
    """What a set's row has."""

    @property
    def id(self) -> str: ...
    @property
    def project_id(self) -> str: ...
    @property
    def state(self) -> SurveyState: ...
    @property
    def failed(self) -> int: ...
    @property
    def operation_id(self) -> str | None: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def ended_at(self) -> datetime | None: ...


R = TypeVar("R", bound=Survey)


@dataclass(frozen=True, slots=True)
class SurveyKind(Generic[R]):
    """Forecasts, or annotations."""

    name: str
    """Kind of the operation, its unit, and first word of ``…_complete``."""
    rows: Surveys[R]
    forget_failed: Callable[[Tx, str], Awaitable[int]]

    async def locked(self, tx: Tx, project_id: str, set_id: str) -> R:
        """Return the set, held to the transaction's end. Raises NotFound."""
        row = await self.rows.get(tx, project_id, set_id, lock=True)
        if row is None:
            raise NotFound("not_found")
        return row

    async def start(self, tx: Tx, row: R, *, retry_failed: bool) -> R:
        """Let an operation ask for what is missing; under way already: stays so. Raises Conflict ``…_complete``."""
        if row.state is SurveyState.RUNNING and await _under_way(tx, row):
            return row
        again = row.failed and retry_failed
        if row.state not in _STARTABLE and row.state is not SurveyState.RUNNING and not again:
            raise Conflict(
                f"{self.name}_complete", "nothing is missing; what failed is asked for again with retry_failed"
            )
        if again:
            await self.forget_failed(tx, row.id)
        operation = await operations.create(tx, row.project_id, self.name, {"set_id": row.id}, unit=self.name)
        started = {"operation_id": operation.id, "started_at": row.started_at or operation.created_at, "ended_at": None}
        return await self.rows.change(tx, row.id, state=SurveyState.RUNNING, stopped_because=None, **started)

    async def cancel(self, tx: Tx, row: R) -> R:
        """End a set that is not done; what was made stays. May be repeated. Raises Conflict ``…_complete``."""
        if row.state is SurveyState.CANCELLED:
            return row
        if row.state is SurveyState.DONE:
            raise Conflict(f"{self.name}_complete", "the set is done")
        if row.operation_id is not None:
            await operations.request_cancel(tx, row.project_id, row.operation_id)
        ended = row.ended_at or await clock.now(tx)
        return await self.rows.change(tx, row.id, state=SurveyState.CANCELLED, ended_at=ended)


async def chosen_tasks(
    tx: Tx, project_id: str, benchmark: str | None, task_ids: Sequence[str], wanted: TaskSelection, seed: int
) -> tuple[str | None, list[Item]]:
    """Return the benchmark's id and the tasks that are chosen.

    Raises NotFound ``benchmark_not_found``, ``task_not_found``, ``overlay_not_found``, Invalid ``no_tasks``.
    """
    benchmark_id = None
    if benchmark is None:
        found = await items.of_tasks(tx, project_id, task_ids)
        missing = sorted(set(task_ids) - {item.task_id for item in found})
        if missing:
            raise NotFound("task_not_found", f"no task {missing[0]}", tasks=missing[:100])
    else:
        meant = await items.benchmark_meant(tx, project_id, benchmark)
        if meant is None:
            raise NotFound("benchmark_not_found", f"no benchmark {benchmark}")
        benchmark_id, found = meant.id, await items.of_benchmark(tx, meant.id)
    found = await overlays.laid_over(tx, found, await overlays.named(tx, project_id, overlays_of(wanted.facets)))
    chosen = select(found, wanted, seed).items
    if not chosen:
        raise Invalid("no_tasks", "the selection leaves no task")
    return benchmark_id, chosen


async def _under_way(tx: Tx, row: Survey) -> bool:
    if row.operation_id is None:
        return False
    operation = await operations.get(tx, row.project_id, row.operation_id)
    return operation is not None and operation.state not in ENDED_OPERATIONS
