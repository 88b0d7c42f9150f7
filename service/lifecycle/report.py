"""Step *report*: figures over a set of runs. Called by the API and the command line; reads only."""

from collections.abc import AsyncIterator

from service.domain.controls import LABEL
from service.domain.run_states import NO_WORK, Flag
from service.reporting.success import Result, Success, success
from service.store import runs
from service.store.database import Tx
from service.store.rows import Cursor, RunFilter, RunRow

PAGE = 500


async def report(tx: Tx, project_id: str, where: RunFilter) -> Success:
    """Return the figures of the project's runs that the filter lets through.

    Controls and preflights are left out, and counted as such, unless the filter asks for their flag.
    """
    wanted = frozenset(where.flag)
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


def _result(run: RunRow, wanted: frozenset[str]) -> Result:
    apart = next((flag for flag in sorted(NO_WORK - wanted) if flag in run.flags), None)
    if apart is not None:
        return Result(apart, run.labels.get(LABEL) if apart is Flag.CONTROL else None)
    return Result(run.outcome, run.ended_because, run.score, run.max_score, Flag.OVERRIDDEN in run.flags)
