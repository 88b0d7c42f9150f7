"""Drives one of our own loops; ``drive`` calls it in place of waiting for a program of the sandbox.

No program runs inside but the tool calls. The deadline, the stop flag, the container's death and the budget are watched
by ``drive``, which cancels this. Called again (by a successor, or after a lost connection) it goes on from the journal.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from service.domain.errors import Fault
from service.domain.events import EventType
from service.domain.run_states import ExitReport
from service.lifecycle.confirmations import Confirmations
from service.lifecycle.context import Context
from service.lifecycle.desktop_opening import opening_of
from service.lifecycle.loop_artefacts import keep_artefacts
from service.lifecycle.loop_desktop import JournalledDesktop
from service.lifecycle.loop_journal import LoopJournal
from service.lifecycle.loop_services import GatewayServices
from service.lifecycle.simulated_client import TRANSCRIPT, SimulatedClient
from service.lifecycle.work import Work
from service.models.clients import client_for
from service.models.messages import ModelClient, Reach
from service.sandboxes.contract import ExecResult, Exited, Sandbox
from service.scaffolds.contract import AgentReport, PlanContext, Translated
from service.scaffolds.environment import base_environment
from service.scaffolds.loops import JournalFull, LoopEnd, LoopJob, LoopScaffold
from service.store.rows import AttemptRow


@dataclass(frozen=True, slots=True)
class LoopAccess:
    """The gateway's local side, as this attempt may use it."""

    agent: Reach
    """With the attempt's run token."""
    client: Reach | None = None
    """Of the model that plays the task's client; null: the agent gets no ``message_client``."""


@dataclass(frozen=True, slots=True)
class LoopExit:
    """In place of a program's exit and of what its output said."""

    exited: Exited
    report: AgentReport


Connect = Callable[[Reach], ModelClient]


async def run_loop(
    ctx: Context,
    attempt: AttemptRow,
    work: Work,
    sandbox: Sandbox,
    context: PlanContext,
    access: LoopAccess,
    connect: Connect = client_for,
) -> LoopExit:
    """Run the loop of ``work.scaffold`` to its end.

    Raises LauncherLost and SandboxGone (look at the container; while it lives, call again), GatewayAway (call again),
    FenceLost, Unavailable.
    """
    scaffold = work.scaffold
    if not isinstance(scaffold, LoopScaffold):
        raise Fault("no_loop", f"scaffold kind {work.manifest.kind!r} has no loop")
    began = asyncio.get_running_loop().time()
    journal = await LoopJournal.open(ctx, attempt)
    async with _connected(access, connect) as (agent, client):
        talk = None if client is None else await SimulatedClient.open(ctx, work, journal, client)
        services = GatewayServices(access.agent, context.settings.services)
        shell = SandboxShell(sandbox, attempt, base_environment(context))
        job = LoopJob(work.task, context, shell, agent, journal, talk, services)
        opening = opening_of(attempt)
        if opening is not None:
            screen = JournalledDesktop(ctx, attempt, sandbox, opening, journal)
            confirm = Confirmations(ctx, attempt, journal, context.settings)
            job = replace(job, desktop=screen, confirmations=confirm)
        end = await _to_the_end(scaffold, job, journal)
    transcript = {} if talk is None else {TRANSCRIPT: talk.transcript()}
    await keep_artefacts(ctx, attempt, work, {**end.artefacts, **transcript})
    wall_s = work.seconds_since_start + asyncio.get_running_loop().time() - began
    report = ExitReport(code=0 if end.status == "success" else 1, signal=None, wall_s=wall_s, max_rss_bytes=None)
    return LoopExit(Exited(report), AgentReport(status=end.status, text=end.text, reason=end.reason))


@asynccontextmanager
async def _connected(access: LoopAccess, connect: Connect) -> AsyncGenerator[tuple[ModelClient, ModelClient | None]]:
    async with AsyncExitStack() as stack:
        clients: list[ModelClient | None] = []
        for reach in (access.agent, access.client):
            client = None if reach is None else connect(reach)
            if client is not None:
                stack.push_async_callback(client.close)
            clients.append(client)
        agent, other = clients
        assert agent is not None
        yield agent, other


async def _to_the_end(scaffold: LoopScaffold, job: LoopJob, journal: LoopJournal) -> LoopEnd:
    try:
        end = await scaffold.loop().run(job)
    except JournalFull:
        return LoopEnd("limit", "too_many_steps")

    async def act() -> dict[str, Any]:
        return asdict(end)

    return LoopEnd(**await journal.step("end", "end", act, _final))


def _final(value: dict[str, Any]) -> Sequence[Translated]:
    return [Translated(EventType.AGENT_FINAL, {key: value[key] for key in ("status", "text", "reason", "detail")})]


class SandboxShell:
    """The sandbox for a loop: each call once, under an id that a successor would use again."""

    def __init__(self, sandbox: Sandbox, attempt: AttemptRow, env: Mapping[str, str]) -> None:
        self._sandbox = sandbox
        self._prefix = f"loop-{attempt.n}-"
        self._env = env

    async def exec(
        self,
        argv: Sequence[str],
        *,
        call_id: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        limit_bytes: int = 1 << 20,
    ) -> ExecResult:
        return await self._sandbox.exec(
            argv, stdin=stdin, env={**self._env, **(env or {})}, timeout_s=timeout_s, limit_bytes=limit_bytes,
            call_id=self._prefix + call_id,
        )  # fmt: skip

    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        return await self._sandbox.read_file(path, limit_bytes=limit_bytes)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._sandbox.write_file(path, data, mode=mode)
