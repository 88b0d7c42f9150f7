"""What a trace is made of, out of the store: in pages, each in a short transaction, and never more than a trace holds."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from service.domain.errors import NotFound
from service.lifecycle.tracing.building import MOST_SPANS, Facts, types
from service.store import attempts, events, model_requests, runs, service_calls
from service.store.database import Database, Tx

PAGE = 500


class _Numbered(Protocol):
    @property
    def n(self) -> int | None: ...


R = TypeVar("R", bound=_Numbered)
_List = Callable[[Tx, str, int, int], Awaitable[Sequence[R]]]


async def facts_of(db: Database, run_id: str, *, content: bool) -> Facts | None:
    """Return what is known of a run; null if it was deleted. Raises Unavailable."""
    async with db.reading() as tx:
        try:
            run = await runs.load(tx, run_id)
        except NotFound:
            return None
        tries = await attempts.list_for_run(tx, run_id)
    found = await _events(db, run_id, content=content)
    asked = await _rows(db, run_id, model_requests.list_for_run)
    called = await _rows(db, run_id, service_calls.list_for_run)
    return Facts(run, tries, found, asked, called)


async def _events(db: Database, run_id: str, *, content: bool) -> list[events.Event]:
    found: list[events.Event] = []
    after = 0
    while len(found) < 2 * MOST_SPANS:
        async with db.reading() as tx:
            page = await events.read(tx, run_id, after, PAGE, types(content=content))
        if not page:
            break
        found += page
        after = page[-1].seq
    return found


async def _rows(db: Database, run_id: str, list_: "_List[R]") -> "list[R]":
    found: list[R] = []
    while len(found) < MOST_SPANS:
        async with db.reading() as tx:
            page = await list_(tx, run_id, (found[-1].n or 0) if found else 0, PAGE)
        found += page
        if len(page) < PAGE:
            break
    return found
