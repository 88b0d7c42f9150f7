"""``/v1/scaffolds/{id}/conformance``: a scaffold tried out against a provider that follows a script."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import AgentsRead, Caller, RunsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.operation_view import Operation, operation_view
from service.api.pagination import ListOf
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.agents import AgentSpec
from service.domain.errors import NotFound
from service.lifecycle.operations.conformance.handler import KIND, ConformanceSpec
from service.lifecycle.operations.conformance.making import drives_screen
from service.lifecycle.scaffold_choice import choose, versioned
from service.scaffolds.conformance.cases import chosen
from service.scaffolds.registry import scaffold_for
from service.store import conformance, operations, scaffolds
from service.store.database import Tx
from service.store.rows import ScaffoldRow

router = APIRouter(prefix="/v1/scaffolds", tags=["agents"], route_class=StrictRoute)


class ConformanceRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cases: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list[str], max_length=100)
    """Only these; empty: all that apply to the scaffold."""
    quick: bool = False
    """Only those that take less than a minute together."""


class ConformanceResult(View):
    """The newest result of one case."""

    case: str
    result: str
    """pass | fail | skipped"""
    expected: str
    """In words."""
    wrong: list[str]
    """What was not as expected, in words; empty where it passed."""
    seen: str | None
    """What happened, in words."""
    argv: list[str]
    run_id: str | None
    """The run, with its events, logs, model requests and deliverable."""
    detail: dict[str, Any]
    """took_s, events (the last 200: seq and type), output_end, wire (requests at the provider), flags …"""
    at: Timestamp


@router.post(
    "/{scaffold_id:path}/conformance", operation_id="check_conformance", response_model=Operation, status_code=202
)
async def check_conformance(
    scaffold_id: str, body: ConformanceRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Try a scaffold (id or ``name@version``) out by ordinary runs on a built-in task; answers with the operation.

    Its result counts passed, failed and skipped cases. A scaffold with driver ``remote`` is tried out by the client
    that claims the runs: those with the label ``conformance`` = the operation's id. 422 ``unknown_case``,
    ``no_conformance`` (nobody drives it but a person).
    """

    async def work(tx: Tx) -> Made:
        scaffold = await _find(tx, caller, await _registered(tx, caller, scaffold_id))
        driver = scaffold_for(scaffold.manifest.kind).driver
        chosen(body.cases, driver, screen=drives_screen(scaffold.manifest), quick=body.quick)
        spec = ConformanceSpec(scaffold_id=scaffold.id, cases=body.cases, quick=body.quick)
        row = await operations.create(tx, caller.project_id, KIND, spec.model_dump(mode="json"), unit="cases")
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, "POST /v1/scaffolds/conformance", work)


@router.get(
    "/{scaffold_id:path}/conformance", operation_id="list_conformance", response_model=ListOf[ConformanceResult]
)
async def list_conformance(scaffold_id: str, request: Request, caller: AgentsRead, state: State) -> Response:
    """List the newest result of each case of a scaffold (id or ``name@version``), by name; at most 100."""
    only_known(request, (), ())
    async with state.db.reading() as tx:
        scaffold = await _find(tx, caller, scaffold_id)
        rows = await conformance.list_for_scaffold(tx, caller.project_id, scaffold.id)
    return answer(ListOf[ConformanceResult](data=[_view(row) for row in rows], next=None))


async def _registered(tx: Tx, caller: Caller, reference: str) -> str:
    """Return ``reference``; a shipped scaffold that it names is registered now, and ``latest`` becomes a version."""
    if "@" not in reference.strip("@"):
        return reference
    return (await choose(tx, caller.project_id, AgentSpec(scaffold=reference))).scaffold


async def _find(tx: Tx, caller: Caller, reference: str) -> ScaffoldRow:
    if "@" in reference:
        row = await scaffolds.find(tx, caller.project_id, await versioned(tx, caller.project_id, reference))
    else:
        row = await scaffolds.get(tx, caller.project_id, reference)
    if row is None:
        raise NotFound("not_found")
    return row


def _view(row: conformance.ConformanceRow) -> ConformanceResult:
    detail = dict(row.detail)
    return ConformanceResult(
        case=row.case_name,
        result=row.result,
        expected=str(detail.pop("expected", "")),
        wrong=[str(one) for one in detail.pop("wrong", [])],
        seen=detail.pop("seen", None),
        argv=[str(one) for one in detail.pop("argv", [])],
        run_id=detail.pop("run_id", None),
        detail=detail,
        at=row.created_at,
    )
