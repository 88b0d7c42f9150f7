"""The runs of a preflight: found or made, watched to their end, judged by whether the machinery worked."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from functools import partial

from service.domain.errors import Expected, NotFound
from service.domain.events import Event, EventType
from service.domain.policies import RunBudget
from service.domain.run_states import Flag, Phase, StopMode
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.operations.preflight.checks import Trial
from service.lifecycle.operations.preflight.findings import Findings
from service.lifecycle.operations.preflight.steps import Steps
from service.lifecycle.operations.preflight.task import READY, WALL_S, problem, task
from service.lifecycle.stop import stop
from service.lifecycle.submit import RunRequest, submit
from service.store import blob_refs, events, model_requests, projects, runs, tasks
from service.store.database import Tx
from service.store.rows import RunFilter, RunRow

LABEL = "preflight"
"""Label of the runs; its value is the operation's id."""
WHICH = "preflight_trial"
LOOK_S = 0.5
QUEUE_S = 1800.0
"""Most seconds that a run waits for a host."""
AFTER_S = 180.0
"""Most seconds from the wall clock's end until the run is done."""
PRIORITY = 100
_PATIENCE_S = 20.0
"""At the gateway, for a provider that is away: what the model answers was asked before."""
_TAIL_CHARS = 1000
_REQUESTS = 200
_EVENTS = 200
_SAYING = (EventType.OUTPUT, EventType.AGENT_WARNING, EventType.AGENT_FINAL)


class Tries:
    """The trials of one operation. Call :meth:`run` once; a start after a crash finds the runs of the first one."""

    def __init__(self, ctx: OperationContext, job: Job, findings: Findings, steps: Steps) -> None:
        self._ctx, self._job, self._findings, self._steps = ctx, job, findings, steps
        self._open: dict[str, Trial] = {}
        self._since: dict[str, float] = {}
        """Run → when it was first seen at work."""

    async def run(self, trials: Sequence[Trial]) -> None:
        """Try all that have an agent with which nothing else is wrong. Raises JobCancelled, Unavailable."""
        await asyncio.to_thread(self._ctx.blobs.store_bytes, READY)
        known = await self._ctx.in_transaction(self._known)
        begun = time.monotonic()
        for number, trial in enumerate(trials):
            await self._begin(number, trial, known.get(str(number)))
        while self._open:
            await self._steps.begin()
            for run_id, trial in [*self._open.items()]:
                await self._look(trial, run_id, begun)
            await asyncio.sleep(LOOK_S if self._open else 0)

    async def _known(self, tx: Tx) -> dict[str, RunRow]:
        return {run.labels.get(WHICH, ""): run for run in await _made(tx, self._job)}

    async def _begin(self, number: int, trial: Trial, known: RunRow | None) -> None:
        agent = next((agent for agent in trial.agents if self._findings.fine(agent)), None)
        if known is None and agent is None:
            await self._steps.ended(f"{trial}: not tried, nothing of its agents would answer")
            return
        try:
            run = known or await self._ctx.in_transaction(
                partial(self._submit, number=number, trial=trial, agent=str(agent))
            )
        except Expected as error:
            if error.status >= 500:
                raise
            await self._wrong(trial, f"{error.type}: {error.detail}")
            return
        self._open[run.id] = trial
        self._findings.runs.append(run.id)

    async def _submit(self, tx: Tx, *, number: int, trial: Trial, agent: str) -> RunRow:
        project = await projects.get(tx, self._job.project_id)
        if project is None:
            raise NotFound("project_not_found")
        digest = hashlib.sha256(READY).hexdigest()
        if digest not in await blob_refs.project_has(tx, project.id, [digest]):
            await blob_refs.add_refs(tx, project.id, LABEL, project.id, [(digest, len(READY))])
        made = await tasks.create(tx, project.id, task(trial.environment))
        request = RunRequest(
            task=made[0].id, agent=agent, max_attempts=1, priority=PRIORITY,
            labels={LABEL: self._job.id, WHICH: str(number)},
            budget=RunBudget(provider_patience_s=_PATIENCE_S),
        )  # fmt: skip
        run = await submit(tx, project, request)
        await runs.add_flags(tx, run.id, [Flag.PREFLIGHT])
        return run

    async def _look(self, trial: Trial, run_id: str, begun: float) -> None:
        run = await self._ctx.in_transaction(partial(runs.load, run_id=run_id))
        now = time.monotonic()
        if run.phase is Phase.DONE:
            del self._open[run_id]
            detail = await self._ctx.in_transaction(partial(_problem, run=run))
            await (self._wrong(trial, f"{detail} ({run_id})") if detail else self._steps.ended(f"{trial}: ok"))
            return
        if run.phase in {Phase.QUEUED, Phase.HELD}:
            late = now - begun > QUEUE_S
            why = f"no host took it within {QUEUE_S:.0f} s: {(run.hold or {}).get('detail', 'all are busy')}"
        else:
            late = now - self._since.setdefault(run_id, now) > WALL_S + AFTER_S
            why = f"still {run.phase.value} {AFTER_S:.0f} s after its two minutes"
        if late:
            del self._open[run_id]
            await self._ctx.in_transaction(partial(self._stop, run_id=run_id))
            await self._wrong(trial, f"{why} ({run_id})")

    async def _wrong(self, trial: Trial, detail: str) -> None:
        self._findings.wrong(trial.agents, f"run of {trial}", detail)
        await self._steps.ended(f"{trial}: failed")

    async def _stop(self, tx: Tx, *, run_id: str) -> None:
        await stop(tx, self._job.project_id, run_id, StopMode.DISCARD)


async def discard(tx: Tx, job: Job) -> None:
    """End what an operation that is to go no further has under way."""
    for run in await _made(tx, job):
        if run.phase is not Phase.DONE:
            await stop(tx, job.project_id, run.id, StopMode.DISCARD)


async def _made(tx: Tx, job: Job) -> Sequence[RunRow]:
    # Labels are anybody's to give; the flag is ours.
    where = RunFilter(flag=(Flag.PREFLIGHT.value,), labels={LABEL: job.id})
    return (await runs.list(tx, job.project_id, where, limit=500)).items


async def _problem(tx: Tx, *, run: RunRow) -> str:
    requests = await model_requests.list_for_run(tx, run.id, 0, _REQUESTS)
    last = await events.read(tx, run.id, max(0, run.last_seq - _EVENTS), _EVENTS, _SAYING)
    said = "".join(_words(event) for event in last)[-_TAIL_CHARS:]
    return problem(run, requests, said)


def _words(event: Event) -> str:
    if event.type == EventType.OUTPUT:
        return str(event.payload.get("text", ""))
    parts = [str(event.payload[name]) for name in ("reason", "text") if event.payload.get(name)]
    return f"{': '.join(parts)}\n"
