"""``/v1/controls``: altered-work controls of runs, made and graded with one call, and what graders made of them."""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.operation_view import Operation, operation_view
from service.api.rendering import View, answer
from service.domain.controls import ControlsRequest, ControlsSpec
from service.domain.errors import NotFound
from service.lifecycle.controls.choosing import chosen
from service.lifecycle.controls.figures import UNFINISHED, KindFigures, Side, figures, seen
from service.lifecycle.operations.controls import KIND
from service.store import audit, operations
from service.store.database import Tx
from service.store.rows import OperationRow

router = APIRouter(prefix="/v1/controls", tags=["gradings"], route_class=StrictRoute)


class ControlsSide(View):
    """One side of the pairs whose verdicts are both scores."""

    n: int
    accepted: int
    acceptance: float | None
    """Share that is accepted; null without a pair."""
    mean_fraction: float | None
    """Of the points."""


class ControlsDifference(View):
    """Of acceptance, controls minus originals."""

    mean: float | None
    interval: tuple[float, float] | None
    """95 %, by bootstrap over pairs; null for fewer than two."""


class ControlsOfKind(View):
    kind: str
    """quarter | other_task | empty | weaker"""
    controls: int
    """That there are."""
    outcomes: dict[str, int]
    """Of making them: ``made``, ``found`` (there already), or why there is none, by reason; empty while they are made."""
    pairs: int
    excluded: dict[str, int]
    """Controls whose pair does not count: ``unfinished``, ``not_graded``, or an outcome without a score."""
    originals: ControlsSide
    altered: ControlsSide
    difference: ControlsDifference


class Controls(View):
    """Altered-work controls of one request."""

    id: str
    """Of the operation."""
    state: str
    """Of the operation that makes them; their gradings may take longer."""
    done: bool
    """All are made and graded."""
    originals: int
    plan: str | None
    """Null: each original's own."""
    seed: int
    accepted_from: float
    kinds: list[ControlsOfKind]


@router.post("", operation_id="create_controls", response_model=Operation, status_code=202)
async def create_controls(body: ControlsRequest, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Make controls of runs and have them graded as their originals are; answers with the operation.

    What they come to is at ``/v1/controls/{operation id}``. Runs of controls are flagged ``control``, and in no report unless
    its filter asks for that flag. The same kind of the same run with the same seed is made once. Takes an
    ``Idempotency-Key``.
    """

    async def work(tx: Tx) -> Made:
        spec = await chosen(tx, caller.project_id, body)
        row = await operations.create(tx, caller.project_id, KIND, spec.model_dump(mode="json"), unit="controls")
        detail = {"originals": len(spec.originals), "kinds": [*spec.kinds], "plan": spec.plan, "seed": spec.seed}
        await audit.record(tx, caller.project_id, caller.token.id, "controls.create", row.id, detail)
        return Made(operation_view(row), 202, f"/v1/controls/{row.id}")

    return await once(request, state, caller, "POST /v1/controls", work)


@router.get("/{operation_id}", operation_id="get_controls", response_model=Controls)
async def get_controls(operation_id: str, caller: GradingsRead, state: State) -> Response:
    """Return how often graders accept the controls and their originals, as far as they are graded."""
    async with state.db.reading() as tx:
        row = await operations.get(tx, caller.project_id, operation_id)
        if row is None or row.kind != KIND:
            raise NotFound("not_found")
        spec = ControlsSpec.model_validate(row.spec)
        at = await seen(tx, caller.project_id, spec)
    return answer(_view(row, spec, await asyncio.to_thread(figures, spec, at)))


def _view(row: OperationRow, spec: ControlsSpec, found: list[KindFigures]) -> Controls:
    ended = row.ended_at is not None
    return Controls(
        id=row.id,
        state=row.state,
        done=ended and not any(UNFINISHED in one.excluded for one in found),
        originals=len(spec.originals),
        plan=spec.plan,
        seed=spec.seed,
        accepted_from=spec.accepted_from,
        kinds=[_kind(one, (row.result or {}).get("kinds", {}).get(one.kind, {})) for one in found],
    )


def _kind(one: KindFigures, outcomes: dict[str, int]) -> ControlsOfKind:
    return ControlsOfKind(
        kind=one.kind,
        controls=one.controls,
        outcomes=outcomes,
        pairs=one.pairs,
        excluded=dict(one.excluded),
        originals=_side(one.originals),
        altered=_side(one.altered),
        difference=ControlsDifference(mean=one.difference.mean, interval=one.difference.interval),
    )


def _side(side: Side) -> ControlsSide:
    return ControlsSide(n=side.n, accepted=side.accepted, acceptance=side.acceptance, mean_fraction=side.mean_fraction)
