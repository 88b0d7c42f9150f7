"""The rows of surveys (forecast sets, annotation sets): found, changed, ended."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sqlalchemy import RowMapping, Table, func, select, update

from service.domain.surveys import SurveyState
from service.store.database import Tx

R = TypeVar("R")


class Surveys(Generic[R]):
    """Over one table with the columns of a survey: project_id, state, operation_id, stopped_because, ended_at, updated_at."""

    def __init__(self, table: Table, of: Callable[[RowMapping], R]) -> None:
        self._table, self._of = table, of

    async def get(self, tx: Tx, project_id: str, set_id: str, *, lock: bool = False) -> R | None:
        """Return the project's set; null if there is none (or it is another project's)."""
        c = self._table.c
        query = select(self._table).where(c.id == set_id, c.project_id == project_id)
        row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
        return None if row is None else self._of(row)

    async def change(self, tx: Tx, set_id: str, **columns: Any) -> R:
        """Write columns of a set whose project the caller checked."""
        query = update(self._table).where(self._table.c.id == set_id)
        query = query.values(**columns, updated_at=func.clock_timestamp()).returning(self._table)
        return self._of((await tx.execute(query)).mappings().one())

    async def end(self, tx: Tx, set_id: str, operation_id: str, state: SurveyState, because: str | None = None) -> None:
        """End a set that this operation runs; one that was cancelled meanwhile, or started anew, stays as it is."""
        c, at = self._table.c, func.clock_timestamp()
        running = (c.id == set_id, c.operation_id == operation_id, c.state == SurveyState.RUNNING)
        ended = {"state": state, "stopped_because": because, "ended_at": at, "updated_at": at}
        await tx.execute(update(self._table).where(*running).values(ended))
