"""One conformance case under way: its run from submission to judgement."""

import time
from collections.abc import Sequence
from typing import Any

from service.domain.agents import Driver
from service.domain.errors import Expected, NotFound
from service.domain.policies import RunBudget
from service.domain.run_states import EndedBecause, Phase, StopMode
from service.lifecycle.operations.conformance.making import Subject, make_agent, make_task, planned_argv
from service.lifecycle.operations.conformance.seen import evidence_of, seen_of, settled
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.stop import stop
from service.lifecycle.submit import RunRequest, submit
from service.models.scripted.exchanges import Exchange
from service.models.scripted.server import Scripted
from service.scaffolds.conformance.cases import Case
from service.store import projects, runs
from service.store.database import Tx
from service.store.rows import RunRow

LABEL = "conformance"
"""Label of the runs; its value is the operation's id."""
QUEUE_S = 1800.0
"""Most seconds that a run waits for a host."""
AFTER_S = 180.0
"""Most seconds from the wall clock's end until the run is done."""
AT_WORK_S = 2.0
"""From the first answer until a run counts as being at work: its tool has then begun."""
SETTLE_S = 10.0
TRIES = 3
"""Runs of a case, where what failed is the machine."""
_MACHINE = frozenset({EndedBecause.PROVISION_FAILED, EndedBecause.SANDBOX_LOST, EndedBecause.INFRA_ERROR})


class Trial:
    """Makes its run, stops it where the case says so, judges it. :meth:`look` is called again and again."""

    def __init__(self, ctx: OperationContext, subject: Subject, case: Case, operation_id: str) -> None:
        self.case = case
        self.result: tuple[str, dict[str, Any]] | None = None
        self._ctx, self._subject, self._operation_id = ctx, subject, operation_id
        self._run_id: str | None = None
        self._base_url = ""
        self._tries = 0
        self._started = time.monotonic()
        self._forget()

    async def start(self, base_url: str) -> None:
        """Submit the run. What the scaffold itself cannot do is the case's failure. Raises Unavailable."""
        self._base_url, self._tries = base_url, self._tries + 1
        self._forget()
        try:
            self._run_id = await self._ctx.in_transaction(lambda tx: self._submit(tx, base_url))
        except Expected as error:
            if error.status >= 500:
                raise
            self._conclude("fail", [f"the run was refused: {error.type}: {error.detail}"], {})

    def _forget(self) -> None:
        self._submitted = time.monotonic()
        self._key = f"sk-scripted-{self.case.scenario}.{self._operation_id}-{self.case.name}-{self._tries}"
        self._began = self._at_work = self._stopped = self._done = float("inf")

    async def _submit(self, tx: Tx, base_url: str) -> str:
        project = await projects.get(tx, self._subject.scaffold.project_id)
        if project is None:
            raise NotFound("project_not_found")
        task = await make_task(tx, project.id, self.case)
        agent = await make_agent(tx, project.id, self._subject, self.case, base_url, self._key)
        request = RunRequest(
            task=task, agent=agent, max_attempts=1, budget=RunBudget(provider_patience_s=self.case.patience_s),
            labels={LABEL: self._operation_id, "case": self.case.name}, sample=self._tries,
        )  # fmt: skip
        return (await submit(tx, project, request)).id

    async def look(self, provider: Scripted) -> None:
        """Do what is due; sets ``result`` at the end. Raises Unavailable."""
        if self._run_id is None or self.result is not None:
            return
        run = await self._ctx.in_transaction(lambda tx: runs.load(tx, str(self._run_id)))
        now = time.monotonic()
        if run.ended_because in _MACHINE and run.phase is Phase.DONE and self._tries < TRIES:
            await self.start(self._base_url)
        elif run.phase is Phase.DONE:
            await self._judge(run, now, self._exchanges(provider))
        elif now > self._deadline(run, now):
            await self.give_up()
            self._conclude("fail", [f"still {run.phase.value} after {now - self._started:.0f} s"], {"run_id": run.id})
        elif self.case.stop and self._stopped == float("inf"):
            await self._stop_when_at_work(run, now, self._exchanges(provider))

    async def give_up(self) -> None:
        """Discard the run, if there is one that goes on."""
        if self._run_id is not None:
            await self._ctx.in_transaction(lambda tx: self._stop(tx, StopMode.DISCARD))

    def _deadline(self, run: RunRow, now: float) -> float:
        if run.phase in {Phase.QUEUED, Phase.HELD}:
            return self._submitted + QUEUE_S
        self._began = min(self._began, now)
        return self._began + self.case.wall_s + AFTER_S

    async def _stop_when_at_work(self, run: RunRow, now: float, exchanges: Sequence[Exchange]) -> None:
        remote = self._subject.driver is Driver.REMOTE
        works = run.phase is Phase.RUNNING and (remote or any(e.turn == 0 and e.status == 200 for e in exchanges))
        if works:
            self._at_work = min(self._at_work, now)
        if now >= self._at_work + AT_WORK_S:
            await self._ctx.in_transaction(lambda tx: self._stop(tx, StopMode.COLLECT))
            self._stopped = time.monotonic()

    async def _stop(self, tx: Tx, mode: StopMode) -> None:
        await stop(tx, self._subject.scaffold.project_id, str(self._run_id), mode)

    async def _judge(self, run: RunRow, now: float, exchanges: Sequence[Exchange]) -> None:
        self._done = min(self._done, now)
        stop_s = None if self._stopped == float("inf") else self._done - self._stopped
        if now < self._done + SETTLE_S and not await self._ctx.in_transaction(lambda tx: settled(tx, run.id)):
            return
        seen = await self._ctx.in_transaction(lambda tx: seen_of(tx, run, exchanges, stop_s))
        evidence = await self._ctx.in_transaction(lambda tx: evidence_of(tx, run, exchanges))
        wrong = self.case.judge(seen)
        self._conclude("fail" if wrong else "pass", wrong, {"seen": seen.words(), **evidence})

    def _conclude(self, result: str, wrong: list[str], detail: dict[str, Any]) -> None:
        took = round(time.monotonic() - self._started, 1)
        head = {"expected": self.case.expectation, "wrong": wrong, "took_s": took}
        self.result = result, {**head, "argv": list(planned_argv(self._subject, self.case)), **detail}

    def _exchanges(self, provider: Scripted) -> list[Exchange]:
        return [exchange for exchange in provider.requests() if exchange.credential == self._key]
