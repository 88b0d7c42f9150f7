"""``/v1/runs/{id}/contamination``: whether the run met its own answer key (NEEDS A3)."""

from fastapi import APIRouter
from starlette.responses import Response

from service.api.auth import RunsRead, State
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import Timestamp, View, answer
from service.api.resources.tasks import HIDDEN_READ
from service.api.waiting import cache_control
from service.store import contamination
from service.store.rows_scans import ScanRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)


class ContaminationHit(View):
    kind: str
    """canary | shingle (a stretch of a hidden file) | file (a hidden file, byte for byte)"""
    source: str | None
    """The hidden file; null for a canary, and without ``hidden:read``."""
    where: str
    """``model request 3``, ``model answer 3``, ``event 17``, ``deliverable report.md``. Untrusted text."""
    excerpt: str | None
    """What was found, in plain form; null without ``hidden:read``."""


class Contamination(View):
    run_id: str
    state: str
    """pending | scanned"""
    scanned_at: Timestamp | None
    version: int | None
    """Of the way of looking."""
    marks: int | None
    """What was looked for; 0: the task has nothing hidden that could be found."""
    scanned_bytes: int | None
    cut: bool
    """Not everything could be looked at: it was too much, or was not kept."""
    hits: list[ContaminationHit]
    """At most 50. Empty and ``scanned``: nothing was found, which is no proof."""


def _view(run_id: str, row: ScanRow | None, *, hidden: bool) -> Contamination:
    hits = [] if row is None else [_hit(hit, hidden=hidden) for hit in row.hits]
    return Contamination(
        run_id=run_id,
        state="pending" if row is None else "scanned",
        scanned_at=None if row is None else row.scanned_at,
        version=None if row is None else row.version,
        marks=None if row is None else row.marks,
        scanned_bytes=None if row is None else row.scanned_bytes,
        cut=row is not None and row.cut,
        hits=hits,
    )


def _hit(hit: dict[str, str], *, hidden: bool) -> ContaminationHit:
    source, excerpt = (hit["source"] or None, hit["excerpt"]) if hidden else (None, None)
    return ContaminationHit(kind=hit["kind"], source=source, where=hit["where"], excerpt=excerpt)


@router.get("/{run_id}/contamination", operation_id="get_contamination", response_model=Contamination)
async def get_contamination(run_id: str, caller: RunsRead, state: State) -> Response:
    """Return what the scan found. It follows the run's end within seconds; a run of the ``oracle`` is not scanned."""
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        row = await contamination.get(tx, run.id)
    headers = {"Cache-Control": cache_control(done=row is not None)}
    return answer(_view(run.id, row, hidden=caller.may(HIDDEN_READ)), headers=headers)
