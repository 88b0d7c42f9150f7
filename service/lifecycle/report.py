"""Step *report*: figures over a set of runs. Called by the API and the command line; reads only."""

from collections.abc import AsyncIterator

from service.domain.controls import LABEL
from service.domain.run_states import Flag
from service.reporting.success import Result, Success, success
from service.store import runs
from service.store.database import Tx
from service.store.rows import Cursor, RunFilter, RunRow

PAGE = 500


async def report(tx: Tx, project_id: str, where: RunFilter) -> Success:
    """Return the figures of the project's runs that the filter lets through.

    Controls are left out, and counted as such, unless the filter asks for their flag.
    """
    wanted = Flag.CONTROL in where.flag
    return success([_result(run, wanted) async for run in _all(tx, project_id, where)])


async def _all(tx: Tx, project_id: str, where: RunFilter) -> AsyncIterator[RunRow]:
    cursor: Cursor | None = None
    while True:
        page = await runs.list(tx, project_id, where, cursor=cursor, limit=PAGE)
        for run in page.items:
            yield run
        cursor = page.next
        if cursor is None:
            return


def _result(run: RunRow, controls: bool) -> Result:
    if Flag.CONTROL in run.flags and not controls:
        return Result(Flag.CONTROL, run.labels.get(LABEL))
    return Result(run.outcome, run.ended_because, run.score, run.max_score, Flag.OVERRIDDEN in run.flags)
