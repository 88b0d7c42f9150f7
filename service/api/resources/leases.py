"""Who drives a run from outside (NEEDS C9): its assignment, a claim with a lease, heartbeat, usage, finish.

A run whose agent is of a scaffold of kind ``remote`` or ``person`` gets a sandbox as any other, and then waits for whoever
claims it. The secret of the claim goes into the header ``Workstead-Lease`` of everything that follows.
"""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from pydantic import Field
from starlette.responses import Response

from service.api.auth import RunsDrive, State
from service.api.driving import Driven, remote_run
from service.api.finishing import Body, DeclaredUsage, FinishRequest, declare, finish
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import Timestamp, View, answer, now
from service.domain.agents import Driver
from service.domain.errors import NotFound
from service.lifecycle.remote_drive import driver_event
from service.sandboxes.contract import OUTPUT_DIR, WORKSPACE
from service.store import agents, audit, leases, tasks, tokens
from service.store.events import append
from service.store.rows import AttemptRow
from service.store.rows_leases import LeaseRow

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)
HEADER = "Workstead-Lease"


class VisibleFile(View):
    path: str
    """Below the workspace."""
    sha256: str
    size_bytes: int


class Assignment(View):
    """What is to be done, as the agent may know it."""

    run_id: str
    phase: str
    driver: str
    """remote | person | external | kit | loop"""
    instruction: str
    workspace: str
    output_dir: str
    collect: list[str]
    """Folders below the workspace that are sealed at the end."""
    files: list[VisibleFile]
    model: str | None
    """Catalogue name of the agent's model."""
    settings: dict[str, Any]
    deadline_at: Timestamp | None
    client_messages: int | None
    """How many questions the simulated client answers (``POST /v1/runs/{id}/messages``); null where there is none."""


class ClaimRequest(Body):
    holder: Annotated[str, Field(min_length=1, max_length=200)]
    """What the driver calls itself: for people who look at the run."""


class Lease(View):
    run_id: str
    attempt: int
    holder: str
    lease: str | None
    """The secret for the header ``Workstead-Lease``; shown once, at the claim."""
    run_token: str | None
    """For model calls through the gateway's public side; only at the claim, and only where the agent has a model."""
    expires_at: Timestamp
    """Without a heartbeat or another action before, the run may be claimed by somebody else."""
    heartbeat_s: float
    """Seconds between heartbeats that are often enough."""
    deadline_at: Timestamp | None


class Declared(View):
    counted: bool
    """False: the gateway has measured this run, and what was declared is kept as an event only."""


class Finished(View):
    run_id: str
    status: str


async def lease_secret(workstead_lease: Annotated[str, Header(max_length=100)] = "") -> str:
    return workstead_lease


Secret = Annotated[str, Depends(lease_secret)]


@router.get("/{run_id}/assignment", operation_id="get_assignment", response_model=Assignment)
async def get_assignment(run_id: str, caller: RunsDrive, state: State) -> Response:
    """Return what the run's driver is to do. The files are in the sandbox already, and at ``/v1/blobs/{sha256}``."""
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        task = await tasks.get(tx, caller.project_id, run.task_id)
        agent = await agents.get(tx, caller.project_id, run.agent_id)
    if task is None or agent is None:
        raise NotFound("not_found")
    manifest = task.manifest
    files = [VisibleFile(path=f.path, sha256=f.sha256, size_bytes=f.size_bytes) for f in manifest.visible]
    return answer(
        Assignment(
            run_id=run.id,
            phase=run.phase,
            driver=run.driver,
            instruction=manifest.instruction,
            workspace=WORKSPACE,
            output_dir=OUTPUT_DIR,
            collect=manifest.collect,
            files=files,
            model=agent.spec.model,
            settings=agent.spec.settings,
            deadline_at=run.deadline_at,
            client_messages=manifest.client.max_messages
            if manifest.client and run.driver is not Driver.PERSON
            else None,
        )
    )


@router.post("/{run_id}/claim", operation_id="claim_run", response_model=Lease, status_code=201)
async def claim_run(run_id: str, body: ClaimRequest, caller: RunsDrive, state: State) -> Response:
    """Take a run that is running and that nobody drives. 409 ``run_not_ready`` before, ``run_claimed`` while it is taken."""
    async with state.db.transaction() as tx:
        run = await remote_run(tx, caller, run_id)
        lease, attempt, secret = await leases.claim(tx, run_id, caller.token.id, body.holder)
        token = None
        if run.model_id is not None:
            note = f"driver of {run_id}"
            _, token = await tokens.mint(
                tx, run.project_id, ["run"], note, kind="run", run_id=run_id, attempt=attempt.n
            )
        await append(tx, run_id, attempt.n, None, [driver_event("claimed", lease, now())])
        await audit.record(tx, caller.project_id, caller.token.id, "run.claim", run_id, {"holder": body.holder})
    return answer(_view(lease, attempt, secret, token), 201, {"Cache-Control": "no-store"})


@router.post("/{run_id}/heartbeat", operation_id="beat_run", response_model=Lease)
async def beat_run(run_id: str, caller: RunsDrive, state: State, secret: Secret) -> Response:
    """Keep the lease. Every other action does so too. 409 ``lease_lost`` when it is not yours any more."""
    async with state.db.transaction() as tx:
        await remote_run(tx, caller, run_id)
        lease, attempt = await leases.hold(tx, run_id, secret)
    return answer(_view(lease, attempt))


@router.post("/{run_id}/release", operation_id="release_run", status_code=204)
async def release_run(run_id: str, caller: RunsDrive, state: State, secret: Secret) -> Response:
    """Give the run back: another driver may claim it and go on where this one stopped."""
    async with state.db.transaction() as tx:
        await remote_run(tx, caller, run_id)
        lease, attempt = await leases.hold(tx, run_id, secret)
        await append(tx, run_id, attempt.n, None, [driver_event("released", lease, now())])
        await leases.release(tx, run_id)
    return Response(status_code=204)


@router.post("/{run_id}/usage", operation_id="declare_usage", response_model=Declared)
async def declare_usage(run_id: str, body: DeclaredUsage, caller: RunsDrive, state: State, secret: Secret) -> Response:
    """Say what model calls that did not go through our gateway took: totals so far. The run's cost is then *declared*."""
    async with state.db.transaction() as tx:
        _, attempt = await Driven(state, caller, run_id, secret).hold(tx)
        counted = await declare(tx, attempt, body)
    return answer(Declared(counted=counted))


@router.post("/{run_id}/finish", operation_id="finish_run", response_model=Finished, status_code=202)
async def finish_run(run_id: str, body: FinishRequest, caller: RunsDrive, state: State, secret: Secret) -> Response:
    """End the run: its sandbox is killed, what it delivered is collected and graded. Nothing more can be done in it."""
    async with state.db.transaction() as tx:
        await remote_run(tx, caller, run_id)
        await finish(tx, run_id, secret, body)
    return answer(Finished(run_id=run_id, status=body.status), 202)


def _view(lease: LeaseRow, attempt: AttemptRow, secret: str | None = None, token: str | None = None) -> Lease:
    begun = lease.beat_at or lease.created_at
    return Lease(
        run_id=lease.run_id,
        attempt=lease.attempt,
        holder=lease.holder,
        lease=secret,
        run_token=token,
        expires_at=lease.expires_at,
        heartbeat_s=(lease.expires_at - begun) / timedelta(seconds=3),
        deadline_at=attempt.deadline_at,
    )
