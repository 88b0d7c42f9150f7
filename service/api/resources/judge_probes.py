"""``/v1/judge-probes``: what a judge does with deliverables of one's own, before anything depends on it."""

from typing import Annotated, Any, Self

from fastapi import APIRouter, Query, Request
from pydantic import Field, model_validator
from starlette.responses import Response

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.operation_view import Operation, operation_view
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import NotFound
from service.domain.probes import ProbeSpec
from service.domain.regrades import Reference, RunChoice
from service.lifecycle.operations.judge_probe import KIND
from service.lifecycle.probing.cases import cases
from service.lifecycle.probing.drawing import drawn
from service.lifecycle.probing.job import ProbeJob
from service.store import operations, probes
from service.store.database import Tx
from service.store.rows import RunFilter
from service.store.rows_grading import ProbeRow
from service.store.run_filters import filter_of

router = APIRouter(prefix="/v1/judge-probes", tags=["gradings"], route_class=StrictRoute)


class ProbeRequest(ProbeSpec):
    """A probe over the runs that ``filter`` lets through, or over ``runs``."""

    filter: RunChoice | None = None
    runs: Annotated[list[Reference], Field(min_length=1, max_length=20_000)] | None = None

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if (self.filter is None) == (self.runs is None):
            raise ValueError("either filter or runs says which runs are meant")
        return self

    def where(self) -> RunFilter:
        if self.runs is not None:
            return RunFilter(ids=tuple(self.runs))
        return filter_of(self.filter or RunChoice())

    def wish(self) -> ProbeSpec:
        return ProbeSpec(**{name: getattr(self, name) for name in ProbeSpec.model_fields})


class ProbeEstimate(View):
    """What a probe would be made of."""

    runs: list[str]
    gradings: int
    """Each asks the judge as often as the method does for one deliverable."""


class JudgeProbe(View):
    """A probe that was made."""

    id: str
    operation_id: str
    model: str
    plan: str | None
    report: dict[str, Any]
    """As ``api_schema/judge_probe.schema.json``."""
    created_at: Timestamp


class ProbeQuery(ListQuery):
    model: Values = ()
    plan: Values = ()


def _view(row: ProbeRow) -> JudgeProbe:
    return JudgeProbe(
        id=row.id,
        operation_id=row.operation_id,
        model=row.model,
        plan=row.plan,
        report=row.report.model_dump(mode="json"),
        created_at=row.created_at,
    )


def _estimate(job: ProbeJob) -> ProbeEstimate:
    return ProbeEstimate(runs=job.runs, gradings=len(job.runs) * len(cases(job.sections, job.repeats)))


@router.post("/estimate", operation_id="estimate_judge_probe", response_model=ProbeEstimate)
async def estimate_judge_probe(body: ProbeRequest, caller: GradingsWrite, state: State) -> Response:
    """Tell which deliverables a probe would use and how many gradings it would ask for; nothing is asked."""
    async with state.db.reading() as tx:
        job = await drawn(tx, caller.project_id, body.wish(), body.where())
    return answer(_estimate(job))


@router.post("", operation_id="probe_judge", response_model=Operation, status_code=202)
async def probe_judge(body: ProbeRequest, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Try a judge out on deliverables of this project; answers with the operation, whose result names the probe.

    Nothing of the runs changes. Takes an ``Idempotency-Key``. 422 ``no_runs``, ``plan_without_judges``, ``unknown_judge``.
    """

    async def work(tx: Tx) -> Made:
        job = await drawn(tx, caller.project_id, body.wish(), body.where())
        row = await operations.create(tx, caller.project_id, KIND, job.model_dump(mode="json"), unit="gradings")
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, "POST /v1/judge-probes", work)


@router.get("", operation_id="list_judge_probes", response_model=ListOf[JudgeProbe], responses=UNCHANGED)
async def list_judge_probes(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[ProbeQuery, Query()]
) -> Response:
    """List the probes that were made. Sorts: created_at."""
    listed = source(request, probes.LISTING, caller.project_id, query, page, model=query.model, plan=query.plan)
    names = chosen(query.fields, JudgeProbe)
    return await answer_list(request, state, listed, _view, names=names, total=query.total)


@router.get("/{probe_id}", operation_id="get_judge_probe", response_model=JudgeProbe)
async def get_judge_probe(probe_id: str, caller: GradingsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await probes.get(tx, caller.project_id, probe_id)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))
