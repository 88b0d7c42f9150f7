"""Step *drive*: from ``running`` to ``ended``. Called by workers.host; next: collect.

Waits for the first reason to end, gathers evidence, decides the cause (domain/run_states.py) and writes it. What can be
known again after a crash (deadline, stop) is killed first; a program's exit is written first, because only the living
launcher can repeat it.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from service.domain.agents import Driver
from service.domain.run_states import (
    INFRASTRUCTURE,
    AttemptState,
    ContainerState,
    EndedBecause,
    Evidence,
    Flag,
    StopMode,
    decide_cause,
)
from service.lifecycle import evidence_record
from service.lifecycle.agent_phase import Phase, inspect
from service.lifecycle.context import Context
from service.lifecycle.drivers import follow
from service.lifecycle.failure import fail_attempt
from service.lifecycle.forgiving import forgiven_s, watch_waiting
from service.lifecycle.gate_watch import provider_failed, watch_gate, watch_silence
from service.lifecycle.keeping import freeze, kept
from service.lifecycle.model_access import needs_gateway, open_gateway
from service.lifecycle.pausing import watch_pauses
from service.lifecycle.stream import OutputPump, recorder_for
from service.lifecycle.watchers import Deadline, ResourceWatch, watch_container, watch_stop
from service.lifecycle.winding_down import stop_steps, wind_down
from service.lifecycle.work import load_work
from service.sandboxes.contract import ContainerReport, EngineError, Exited, SandboxGone
from service.scaffolds.contract import AgentReport
from service.scaffolds.loops import SAFETY_DENIED
from service.store import attempts, runs
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

KILL_FIRST = frozenset({EndedBecause.WALL_CLOCK, EndedBecause.STOPPED, EndedBecause.CANCELLED})
WRITE_PATIENCE_S = 10.0
"""How long a program that has exited may go unkilled because what it left cannot be written."""
NOTICEABLE_WAIT_S = 1.0
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Ending:
    """What the watchers found; several may have come at once."""

    exited: Exited | None = None
    deadline: bool = False
    disk: bool = False
    stop: StopMode | None = None
    silent: bool = False


async def drive(ctx: Context, attempt: AttemptRow) -> None:
    """Watch the agent phase to its end. Raises FenceLost, Unavailable (the step is then repeated)."""
    work = await load_work(ctx, attempt)
    assert attempt.sandbox_id is not None
    try:
        sandbox = await ctx.sandboxes.open(attempt.sandbox_id)
    except SandboxGone:
        gone = Evidence(container=ContainerState.GONE, stop=work.run.stop_mode)
        await _end_without_sandbox(ctx, attempt, gone)
        return
    recorder = recorder_for(ctx, work, attempt)
    pump = OutputPump(ctx, attempt, sandbox, recorder)
    phase = Phase(ctx, attempt, work, sandbox, recorder, pump, asyncio.get_running_loop().time())
    if needs_gateway(work) and work.run.driver is Driver.KIT:
        await open_gateway(ctx, attempt, work, sandbox, work.seconds_left)
    ending = await _first_ending(phase)
    evidence = await _evidence(phase, ending)
    await _end(phase, evidence, ending.exited)


async def _first_ending(phase: Phase) -> _Ending:
    ctx, work = phase.ctx, phase.work
    late = work.seconds_left <= 0
    deadline = Deadline(ctx.timing.drain_s if late else work.seconds_left)
    soft = bool(phase.sandbox.attestation.get("soft_quota"))
    resources = ResourceWatch(
        ctx, phase.attempt, phase.sandbox, work.run.limits.disk_bytes, soft, work.run.memory_peak_bytes or 0
    )
    exited, timed_out, stopped, full, silent, *others = await _race(
        follow(phase),
        deadline.wait(),
        watch_stop(ctx, phase.attempt, phase.sandbox, deadline),
        resources.run(),
        watch_silence(ctx, phase.attempt, phase.pump),
        watch_gate(ctx, phase.attempt),
        _death(phase),
        watch_pauses(phase, deadline),
        watch_waiting(phase, deadline),
    )
    del others  # the evidence asks gateway and engine itself
    ending = _Ending(deadline=timed_out is not None, disk=full is not None, silent=silent is not None)
    if exited is not None:
        ending.exited = exited.result()
    if stopped is not None:
        ending.stop = stopped.result()
    return ending


async def _race(*coroutines: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any] | None]:
    """Run all until the first is done; return the tasks that are, None for the others (cancelled). Raises what they raise."""
    tasks = [asyncio.create_task(c) for c in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = [t if t.done() else None for t in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if task is not None and (error := task.exception()) is not None:
            raise error
    return done


async def _death(phase: Phase) -> ContainerReport:
    """Return some time after the container's death: the output that the launcher sent before it comes first."""
    report = await watch_container(phase.ctx, phase.sandbox)
    await asyncio.sleep(phase.ctx.timing.drain_s)
    return report


async def _evidence(phase: Phase, ending: _Ending) -> Evidence:
    report, engine_error = await inspect(phase.ctx, phase.sandbox)
    exited = ending.exited
    exit_report = exited.report if exited else None
    over = exited is not None and _too_late(phase, exited)
    completed = None
    if exit_report is not None and not over:
        # Its last lines may have come while others were being written: they are part of what it said of its ending.
        await _insist(phase, phase.pump.close())
        completed = phase.work.scaffold.completed(exit_report, phase.work.manifest, phase.report)
    gate = await phase.ctx.models.state(phase.attempt.run_id, phase.attempt.n)
    return Evidence(
        budget_exhausted=gate.budget_exhausted,
        provider_failed=provider_failed(gate, phase.work.run.limits.wall_clock_s),
        safety_denied=phase.said is not None and phase.said.reason == SAFETY_DENIED,
        silent=ending.silent,
        exit=None if over else exit_report,
        completed=completed,
        container=report.state if report else ContainerState.RUNNING,
        container_exit_code=report.exit_code if report else None,
        oom_kills=report.oom_kills if report else 0,
        deadline_passed=ending.deadline or over,
        disk_limit=ending.disk,
        stop=ending.stop or phase.work.run.stop_mode,
        engine_restarted=bool(report and report.engine_restarted and report.state is not ContainerState.RUNNING),
        engine_error=engine_error,
    )


def _too_late(phase: Phase, exited: Exited) -> bool:
    """Tell whether this exit came after the deadline while no worker watched: then the deadline is the cause."""
    waited = forgiven_s(phase, exited.waited_for_host_s)
    return phase.work.seconds_left <= 0 and exited.report.wall_s - waited > phase.work.run.limits.wall_clock_s


async def _end(phase: Phase, evidence: Evidence, exited: Exited | None) -> None:
    ctx, attempt, cause = phase.ctx, phase.attempt, decide_cause(evidence)
    wall_s = phase.wall_s
    if cause in INFRASTRUCTURE:
        await phase.pump.close()
        await ctx.models.close(attempt.run_id, attempt.n)
        await fail_attempt(ctx, attempt, cause, evidence_record.to_json(evidence))
        return
    still_there = evidence.exit is None and (evidence.silent or evidence.budget_exhausted)
    if cause in KILL_FIRST or still_there:
        await _stop_gently(phase, cause)
        if kept(phase.work.run, cause):
            await freeze(phase.sandbox)
        else:
            await _kill(phase)
    await _insist(phase, _write_end(phase, evidence, cause, wall_s, exited))
    ctx.crash.reach("drive.decided")


async def _insist(phase: Phase, write: Coroutine[Any, Any, None]) -> None:
    """Await a write of what a program left; where that takes long, the sandbox is killed meanwhile."""
    writing = asyncio.create_task(write)
    try:
        await asyncio.wait({writing}, timeout=WRITE_PATIENCE_S)
        if not writing.done():
            await _kill(phase)
        await writing
    finally:
        writing.cancel()


async def _stop_gently(phase: Phase, cause: EndedBecause) -> None:
    """Take the model away; a program whose time is over, or that hangs, is told before it is killed."""
    await phase.ctx.models.close(phase.attempt.run_id, phase.attempt.n)
    if cause not in (EndedBecause.STOPPED, EndedBecause.CANCELLED) and phase.work.run.driver is Driver.KIT:
        await wind_down(phase.sandbox, phase.pump, stop_steps(phase.attempt))


async def _write_end(
    phase: Phase, evidence: Evidence, cause: EndedBecause, wall_s: float, exited: Exited | None
) -> None:
    ctx, attempt = phase.ctx, phase.attempt
    await phase.pump.close()
    await ctx.models.close(attempt.run_id, attempt.n)
    waited = exited.waited_for_host_s if exited else 0.0

    async def store(tx: Tx) -> None:
        now = await attempts.get(tx, attempt.run_id, attempt.n) or attempt  # a loop has named artefacts meanwhile
        await attempts.advance(
            tx,
            attempt,
            AttemptState.ENDED,
            ended_because=cause,
            evidence=evidence_record.to_json(evidence),
            provenance={**now.provenance, "reported": _reported(phase.report)},
        )
        await runs.update(tx, attempt.run_id, wall_s=wall_s, waited_for_host_s=waited)
        await runs.add_flags(tx, attempt.run_id, _flags(phase, evidence, cause, waited))

    await retrying(ctx.db, store, ctx.timing.database_patience_s)


def _reported(report: AgentReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    usage = None if report.usage is None else report.usage.model_dump()
    cost = None if report.cost_usd is None else str(report.cost_usd)
    said = {"status": report.status, "reason": report.reason[:2000], "text": report.text[:2000]}
    return {**said, "usage": usage, "cost_usd": cost}


def _flags(phase: Phase, evidence: Evidence, cause: EndedBecause, waited: float) -> list[Flag]:
    flags: list[Flag] = []
    if evidence.oom_kills and cause is EndedBecause.COMPLETED:
        flags.append(Flag.MEMORY_LIMIT_HIT)
    if waited > NOTICEABLE_WAIT_S:
        flags.append(Flag.WAITED_FOR_HOST)
    if phase.sandbox.attestation.get("soft_quota"):
        flags.append(Flag.SOFT_QUOTA)
    return flags


async def _kill(phase: Phase) -> None:
    # Collection kills again and insists on the engine's word.
    with contextlib.suppress(EngineError, SandboxGone):
        await phase.sandbox.kill()


async def _end_without_sandbox(ctx: Context, attempt: AttemptRow, evidence: Evidence) -> None:
    await fail_attempt(ctx, attempt, decide_cause(evidence), evidence_record.to_json(evidence))
