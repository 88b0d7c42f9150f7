"""Step *provision*: from ``claimed`` over ``bound`` to ``running``. Called by workers.host; next: drive.

Order matters. Files go into a sandbox that is nobody's yet; when they are complete, its id, the deadline and the command
are written in one transaction, and only then is it started. So a successor knows: ``claimed``, then no program was
started, and a sandbox that was being prepared is the reaper's; ``bound``, then the files are complete and are not
touched any more, and ``start`` is repeated (a no-op if it was accepted).
"""

import asyncio
import hashlib
from typing import Any

import structlog

from service.desktop.session import NO_DESKD, DesktopLost
from service.domain.agents import SCREENS, AgentSettings, Driver
from service.domain.desktop import Screen
from service.domain.errors import Invalid
from service.domain.images import ID
from service.domain.run_states import AttemptState, EndedBecause, Evidence, StopMode
from service.lifecycle import evidence_record
from service.lifecycle.context import Context
from service.lifecycle.desktop_opening import opening_of
from service.lifecycle.failure import fail_attempt
from service.lifecycle.model_access import open_gateway
from service.lifecycle.plan_inputs import INSTRUCTION_FILE, plan_context
from service.lifecycle.work import Work, load_work
from service.sandboxes.contract import (
    WORKSPACE,
    Command,
    FileSource,
    Sandbox,
    SandboxError,
    SandboxGone,
    SandboxRefused,
    SandboxSpec,
    ToolFailed,
)
from service.scaffolds.contract import Plan
from service.scaffolds.media.placing import equipped
from service.store import attempts, runs, tokens
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

TOKEN_VARIABLE = "WORKSTEAD_RUN_TOKEN"  # noqa: S105 - a name
MAX_TEMPLATE_BYTES = 200_000
INSIDE_MARGIN_S = 10.0
"""The inside deadline comes later than the host's, so that the host's cause wins."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def provision(ctx: Context, attempt: AttemptRow) -> None:
    """Make or take the sandbox, write the files, start the command. Raises FenceLost, Unavailable."""
    work = await load_work(ctx, attempt)
    if work.run.stop_mode is not None and attempt.sandbox_id is None:
        await _cancel(ctx, attempt)
        return
    made: list[Sandbox] = []
    try:
        await _provision(ctx, attempt, work, made)
    except (SandboxRefused, ToolFailed, Invalid) as error:
        # A rule of ours, an image that does not do, files that do not fit: a further attempt would end the same way.
        await _fail(ctx, attempt, error, made, retry=False)
    except DesktopLost as error:
        # No agent has been near it. An image of ours may come up another time; of a project's own, nobody knows.
        shipped = ID.fullmatch(work.run.environment) is None and error.type != NO_DESKD
        await _fail(ctx, attempt, error, made, retry=shipped)
    except SandboxError as error:
        await _fail(ctx, attempt, error, made, retry=True)


async def _provision(ctx: Context, attempt: AttemptRow, work: Work, made: list[Sandbox]) -> None:
    fresh = attempt.sandbox_id is None
    left = work.run.limits.wall_clock_s if fresh else work.seconds_left
    plan = await _plan(ctx, work, int(ctx.clock.now().timestamp() + left), left)
    if attempt.sandbox_id is not None:
        sandbox = await ctx.sandboxes.open(attempt.sandbox_id)
        attempt, secret = await _intend(ctx, attempt, work, plan)
    else:
        spec = await _spec(ctx, attempt, work)
        sandbox = await ctx.warm.take(spec) or await ctx.sandboxes.backend.make(spec)
        made.append(sandbox)
        ctx.sandboxes.hold(sandbox)
        try:
            attempt, secret = await _prepare(ctx, attempt, work, plan, sandbox)
        except BaseException:
            ctx.sandboxes.release(sandbox.id)  # not bound: it is the reaper's, if nobody destroys it before
            raise
    await open_gateway(ctx, attempt, work, sandbox, left)
    await _open_screen(ctx, attempt, sandbox)
    await _start(ctx, attempt, work, plan, sandbox, secret, left, fresh=fresh)


async def _spec(ctx: Context, attempt: AttemptRow, work: Work) -> SandboxSpec:
    backend, kit = ctx.sandboxes.backend, work.kit
    return SandboxSpec(
        environment=await backend.resolve_image(work.environment),
        kit=None if kit is None else await backend.resolve_image(kit),
        limits=work.run.limits,
        runtime=attempt.runtime or "runc",
        confinement="desktop" if work.surface in SCREENS else "default",
    )


async def _prepare(
    ctx: Context, attempt: AttemptRow, work: Work, plan: Plan, sandbox: Sandbox
) -> tuple[AttemptRow, str]:
    ctx.crash.reach("provision.made")
    await sandbox.write_files(_files(ctx, work, plan))
    ctx.crash.reach("provision.files_written")
    bound = await _intend(ctx, attempt, work, plan, sandbox)
    ctx.crash.reach("provision.bound")
    return bound


async def _open_screen(ctx: Context, attempt: AttemptRow, sandbox: Sandbox) -> None:
    """Have the screen there before the clock starts. Raises DesktopLost, SandboxError."""
    opening = opening_of(attempt)
    if opening is not None:
        await ctx.desktops.of(sandbox, opening)


async def _start(
    ctx: Context,
    attempt: AttemptRow,
    work: Work,
    plan: Plan,
    sandbox: Sandbox,
    secret: str,
    left: float,
    *,
    fresh: bool,
) -> None:
    if plan.argv and work.run.driver is not Driver.REMOTE:  # else: made as for the scaffold, and driven by hand
        env = {**plan.env, **dict.fromkeys((TOKEN_VARIABLE, *plan.token_variables), secret)}
        deadline_s = max(1.0, left) + INSIDE_MARGIN_S
        await sandbox.start(Command(list(plan.argv), env, plan.stdin, WORKSPACE, deadline_s))
    ctx.crash.reach("provision.started")

    async def running(tx: Tx) -> None:
        # The clock starts with the program; one that an earlier process may have started keeps its deadline.
        deadline = work.run.limits.wall_clock_s if fresh else None
        row = await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=deadline)
        if row.started_at is not None:
            took = (row.started_at - row.created_at).total_seconds()
            await runs.update(tx, attempt.run_id, provision_s=max(0.0, took))

    await retrying(ctx.db, running, ctx.timing.database_patience_s)


async def _intend(
    ctx: Context, attempt: AttemptRow, work: Work, plan: Plan, sandbox: Sandbox | None = None
) -> tuple[AttemptRow, str]:
    """Write that the command is about to be started, where (if that is new), and mint its token.

    A token minted before by a process that died stays valid: the program may have been started with it.
    """
    hidden = dict.fromkeys((TOKEN_VARIABLE, *plan.token_variables), "redacted")
    columns: dict[str, Any] = {
        "argv": list(plan.argv),
        "env": {**plan.env, **hidden},
        "provenance": _provenance(work, plan),
    }
    if sandbox is not None:
        columns["sandbox_id"] = sandbox.id
        columns["environment_image"], columns["kit_image"] = sandbox.spec.environment, sandbox.spec.kit
        columns["attestation"] = {**sandbox.attestation, "reference_solution": plan.reference_solution}
    deadline = work.run.limits.wall_clock_s if sandbox is not None else None

    async def intend(tx: Tx) -> tuple[AttemptRow, str]:
        run = work.run
        row = await attempts.advance(tx, attempt, AttemptState.BOUND, deadline_in_s=deadline, **columns)
        _, secret = await tokens.mint(
            tx, run.project_id, ["run"], f"run {run.id}", kind="run", run_id=run.id, attempt=attempt.n
        )
        return row, secret

    return await retrying(ctx.db, intend, ctx.timing.database_patience_s)


async def _plan(ctx: Context, work: Work, deadline_unix: int, seconds: float) -> Plan:
    template = AgentSettings.of(work.agent.settings).prompt_template
    context = plan_context(
        work.agent,
        work.models,
        sample=work.run.sample,
        seconds=seconds,
        deadline_unix=deadline_unix,
        policy=work.run.network.policy,
        template=None if template is None else await asyncio.to_thread(_template, ctx, template),
        manifest=work.manifest,
    )
    return equipped(work.scaffold.plan(work.task, work.agent, work.manifest, context), context)


def _template(ctx: Context, digest: str) -> str:
    try:
        data = ctx.blobs.path(digest).read_bytes()
    except FileNotFoundError:
        raise Invalid("template_not_found", f"no blob {digest} (the agent's prompt template)") from None
    return data[:MAX_TEMPLATE_BYTES].decode(errors="replace")


def _provenance(work: Work, plan: Plan) -> dict[str, Any]:
    """Return what repeats the attempt, and what ``drive`` needs of the plan."""
    configuration = {w.path: hashlib.sha256(w.data).hexdigest() for w in plan.written}
    return {
        **plan.provenance,
        **(_screen(work) if work.surface in SCREENS else {}),
        "models": [{"name": m.spec.name, "upstream_id": m.spec.upstream_id} for m in work.models],
        "configuration": configuration,
        "stop": [step.model_dump(mode="json") for step in plan.stop or work.manifest.stop],
        "hang_s": work.manifest.hang_s or plan.hang_s,
    }


def _screen(work: Work) -> dict[str, Any]:
    screen = AgentSettings.of(work.agent.settings).screen or Screen()
    asked = {"environment_asked": work.task.environment, "environment": work.run.environment}
    return {"surface": work.surface, "screen": screen.model_dump(), **asked}


def _files(ctx: Context, work: Work, plan: Plan) -> list[FileSource]:
    """Return the visible files and the plan's own: nothing hidden is named here but by a plan's reference solution."""
    visible = [FileSource(f.path, file=ctx.blobs.path(f.sha256)) for f in work.task.visible]
    planned = [FileSource(f.path, file=ctx.blobs.path(f.sha256), mode=f.mode) for f in plan.files]
    instruction = FileSource(INSTRUCTION_FILE.removeprefix(f"{WORKSPACE}/"), data=work.task.instruction.encode())
    written = [FileSource(w.path, data=w.data, mode=w.mode) for w in plan.written]
    return [*visible, *planned, *written, instruction]


async def _cancel(ctx: Context, attempt: AttemptRow) -> None:
    """End an attempt whose stop was asked for before its command started: nothing was done, so nothing is collected."""
    evidence = Evidence(stop=StopMode.DISCARD)

    async def end(tx: Tx) -> None:
        record = evidence_record.to_json(evidence)
        await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.CANCELLED, evidence=record)

    await retrying(ctx.db, end, ctx.timing.database_patience_s)


async def _fail(
    ctx: Context, attempt: AttemptRow, error: SandboxError | Invalid | DesktopLost, made: list[Sandbox], *, retry: bool
) -> None:
    log.warning("provision_failed", run=attempt.run_id, attempt=attempt.n, error=str(error))
    gone = isinstance(error, SandboxGone) and attempt.sandbox_id is not None
    cause = EndedBecause.SANDBOX_LOST if gone else EndedBecause.PROVISION_FAILED
    evidence = {"engine_error": error.detail or error.type, "type": error.type}
    sandbox_id = made[0].id if made else None
    await fail_attempt(ctx, attempt, cause, evidence, sandbox_id=sandbox_id, retry=retry)
