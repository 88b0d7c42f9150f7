"""Jobs of gradings: cancel what is open, look through what failed (the dead letter), put it back into the queues."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import Invalid, NotFound
from service.store import audit, grading_jobs, gradings
from service.store.database import Tx
from service.store.grading_jobs import Moved, Wanted

router = APIRouter(prefix="/v1/gradings", tags=["gradings"], route_class=StrictRoute)
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=grading_jobs.BATCH)]


class JobFilter(BaseModel):
    """Which gradings; what is given holds together. Nothing given: none, unless ``all`` is true."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    ids: Words = []
    cause: Words = []
    method: Words = []
    plan: Words = []
    run_id: Words = []
    regrade_id: Words = []
    all: bool = False

    def wanted(self) -> Wanted:
        """Raises Invalid ``nothing_chosen``."""
        wanted = Wanted(self.ids, self.cause, self.method, self.plan, self.run_id, self.regrade_id)
        if wanted == Wanted([], [], [], [], [], []) and not self.all:
            raise Invalid("nothing_chosen", "name ids, cause, method, plan, run_id or regrade_id; or all: true")
        return wanted


class Cancelled(View):
    cancelled: int
    more: bool
    """There are others; ask again."""


class Replayed(View):
    replayed: int
    more: bool
    """There are others; ask again."""


class DeadLetter(View):
    """Failed gradings of one cause and method."""

    cause: str | None
    method: str
    gradings: int
    runs: int
    oldest_at: Timestamp | None
    newest_at: Timestamp | None


class DeadLetterList(View):
    data: list[DeadLetter]


@router.get("/dead-letter", operation_id="list_dead_letter", response_model=DeadLetterList)
async def list_dead_letter(request: Request, caller: GradingsRead, state: State) -> Response:
    """Count failed gradings by cause and method, most first; ``/v1/gradings?state=failed&cause=…`` lists them."""
    only_known(request, (), ())
    async with state.db.reading() as tx:
        found = await grading_jobs.dead_letter(tx, caller.project_id)
    names = ("cause", "method", "gradings", "runs", "oldest_at", "newest_at")
    return answer(DeadLetterList(data=[DeadLetter(**{name: getattr(row, name) for name in names}) for row in found]))


@router.post("/cancel", operation_id="cancel_gradings", response_model=Cancelled)
async def cancel_gradings(body: JobFilter, request: Request, caller: GradingsWrite, state: State) -> Response:
    """End open gradings as failed, cause ``cancelled``, up to 200 of them. Votes that were given stay."""
    wanted = body.wanted()

    async def work(tx: Tx) -> Made:
        moved = await grading_jobs.cancel(tx, caller.project_id, wanted)
        await _audit(tx, caller, "cancel", body, moved)
        return Made(Cancelled(cancelled=moved.count, more=moved.more), 200)

    return await once(request, state, caller, "POST /v1/gradings/cancel", work)


@router.post("/replay", operation_id="replay_gradings", response_model=Replayed)
async def replay_gradings(body: JobFilter, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Put failed gradings back into their queues, up to 200 of them; a run without a verdict is ``grading`` again.

    Valid votes stay, so that only what is missing is asked for. Cancelled ones come back only by id or by this cause.
    """
    wanted = body.wanted()

    async def work(tx: Tx) -> Made:
        moved = await grading_jobs.replay(tx, caller.project_id, wanted)
        await _audit(tx, caller, "replay", body, moved)
        return Made(Replayed(replayed=moved.count, more=moved.more), 200)

    return await once(request, state, caller, "POST /v1/gradings/replay", work)


@router.post("/{grading_id}/cancel", operation_id="cancel_grading", response_model=Cancelled)
async def cancel_grading(grading_id: str, caller: GradingsWrite, state: State) -> Response:
    """End it as failed, cause ``cancelled``, if it has not ended; no judge is asked any more."""
    async with state.db.transaction() as tx:
        if await gradings.get(tx, caller.project_id, grading_id) is None:
            raise NotFound("not_found")
        moved = await grading_jobs.cancel(tx, caller.project_id, Wanted(ids=[grading_id]))
        await _audit(tx, caller, "cancel", JobFilter(ids=[grading_id]), moved)
    return answer(Cancelled(cancelled=moved.count, more=moved.more))


async def _audit(tx: Tx, caller: Caller, action: str, body: JobFilter, moved: Moved) -> None:
    if moved.count:
        detail = {**body.model_dump(exclude_defaults=True), "count": moved.count}
        await audit.record(tx, caller.project_id, caller.token.id, f"gradings.{action}", "gradings", detail)
