"""Operation ``conformance``: a scaffold goes through the cases, as ordinary runs against a scripted provider."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic import Field

from service.domain.agents import Driver
from service.domain.errors import NotFound
from service.domain.run_states import Phase, StopMode
from service.domain.tasks import Strict
from service.lifecycle.operations.conformance.making import Subject, subject_of
from service.lifecycle.operations.conformance.trial import LABEL, Trial
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.stop import stop
from service.models.scripted.server import Scripted
from service.scaffolds.conformance import judging
from service.scaffolds.conformance.cases import Case, chosen
from service.scaffolds.conformance.scenarios import SCENARIOS
from service.scaffolds.conformance.screens import desktop_scenarios
from service.scaffolds.conformance.task import INPUT
from service.store import conformance, operations, runs, scaffolds
from service.store.database import Tx
from service.store.rows import RunFilter

KIND = "conformance"
AT_ONCE = 3
"""Runs of one operation at a time: programs share the machine, and slow starts are not what is tried out."""
LOOK_S = 0.3


class ConformanceSpec(Strict):
    scaffold_id: str
    cases: list[str] = Field(default_factory=list[str], max_length=100)
    quick: bool = False


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {scaffold_id, passed, failed, skipped, results: case → result}. Raises Invalid, NotFound, JobCancelled."""
    spec = ConformanceSpec.model_validate(job.spec)

    async def load(tx: Tx) -> Subject:
        scaffold = await scaffolds.get(tx, job.project_id, spec.scaffold_id)
        if scaffold is None:
            raise NotFound("scaffold_not_found", f"no scaffold {spec.scaffold_id}")
        return subject_of(scaffold)

    subject = await ctx.in_transaction(load)
    cases = chosen(spec.cases, subject.driver, screen=subject.screen, quick=spec.quick)
    await _turn(ctx, job, len(cases))
    await ctx.in_transaction(lambda tx: _sweep(tx, job))
    await asyncio.to_thread(ctx.blobs.store_bytes, INPUT)
    results: dict[str, str] = {}
    async with _provider(ctx) as provider:
        able = [case for case in (_fitting(subject, case) for case in cases) if case is not None]
        for case in cases:
            if case.name not in {one.name for one in able}:
                detail = {"expected": case.expectation, "seen": "not tried: the scaffold asks no such model"}
                await _keep(ctx, subject, case.name, "skipped", detail)
                results[case.name] = "skipped"
        await _all(ctx, job, subject, able, provider, results)
    counted = {name: sum(result == of for result in results.values()) for name, of in _COUNTED.items()}
    return {"scaffold_id": subject.scaffold.id, **counted, "results": results}


_COUNTED = {"passed": "pass", "failed": "fail", "skipped": "skipped"}


def _fitting(subject: Subject, case: Case) -> Case | None:
    """Return the case as it applies; None: what it is about cannot happen to this scaffold, for it asks no such model."""
    if case.dialect is not None and not subject.speaks(case.dialect):
        return None
    if subject.dialect is not None or subject.driver is Driver.REMOTE:
        return case
    return replace(case, judge=judging.worked) if case.name == "success" else None


async def _all(
    ctx: OperationContext, job: Job, subject: Subject, cases: list[Case], provider: Scripted, results: dict[str, str]
) -> None:
    waiting = [Trial(ctx, subject, case, job.id) for case in cases]
    active: list[Trial] = []
    total = len(cases) + len(results)
    base_url = f"http://{ctx.provider_host}:{provider.port}"
    try:
        while waiting or active:
            while waiting and len(active) < AT_ONCE:
                active.append(waiting.pop(0))
                job.say(f"{active[-1].case.name} begins")
                await active[-1].start(base_url)
            await asyncio.sleep(LOOK_S)
            for trial in active:
                await trial.look(provider)
            for trial in [one for one in active if one.result is not None]:
                active.remove(trial)
                await _conclude(ctx, job, subject, trial, results)
            await job.report(len(results), total)
    finally:
        for trial in active:
            await trial.give_up()


async def _conclude(ctx: OperationContext, job: Job, subject: Subject, trial: Trial, results: dict[str, str]) -> None:
    assert trial.result is not None
    result, detail = trial.result
    await _keep(ctx, subject, trial.case.name, result, detail)
    results[trial.case.name] = result
    wrong = "; ".join(detail["wrong"]) or detail.get("seen", "")
    job.say(f"{trial.case.name}: {result} ({detail['took_s']} s): {wrong}")


async def _keep(ctx: OperationContext, subject: Subject, case: str, result: str, detail: dict[str, Any]) -> None:
    async def put(tx: Tx) -> None:
        await conformance.put(tx, subject.scaffold.project_id, subject.scaffold.id, case, result, detail)

    await ctx.in_transaction(put)


async def _turn(ctx: OperationContext, job: Job, total: int) -> None:
    """Wait until no older one of the project is under way: they share models by name. Raises JobCancelled."""
    while await ctx.in_transaction(lambda tx: operations.older_open(tx, job.project_id, KIND, job.id)):
        job.say("waiting for the conformance run before this one")
        await job.report(0, total)
        await asyncio.sleep(2.0)


async def _sweep(tx: Tx, job: Job) -> None:
    """Discard what a start of this operation before a crash has left: its provider is gone."""
    left = await runs.list(tx, job.project_id, RunFilter(labels={LABEL: job.id}), limit=500)
    for run in left.items:
        if run.phase is not Phase.DONE:
            await stop(tx, job.project_id, run.id, StopMode.DISCARD)


@asynccontextmanager
async def _provider(ctx: OperationContext) -> AsyncGenerator[Scripted]:
    """A provider that the gateway can reach: on loopback, or on all addresses where the gateway is another host."""
    local = ctx.provider_host == "127.0.0.1"
    provider = Scripted((*SCENARIOS, *desktop_scenarios()), host="127.0.0.1" if local else "0.0.0.0")  # noqa: S104 - a host of its own is a setting
    await asyncio.to_thread(provider.start)
    try:
        yield provider
    finally:
        await asyncio.to_thread(provider.stop)
