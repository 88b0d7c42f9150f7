"""Operation ``judge_probe`` (NEEDS E 3): a judge tried out on deliverables of one's own, one page at the end.

Its answers are no votes: nothing of a run changes. A start after a crash asks again only for the cases that were under way.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from service.domain.errors import Conflict, Unavailable
from service.domain.evidence import EvidenceDocument
from service.domain.grading_plans import specs_for
from service.domain.probes import Cost, Outcome
from service.domain.tasks import GraderSpec, canonical_digest
from service.domain.verdicts import VerdictState
from service.graders.contract import GraderFault
from service.graders.registry import grader_for
from service.lifecycle.evidence import EvidenceOf
from service.lifecycle.grading_context import GradeContext
from service.lifecycle.grading_input import input_of
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.judging import Judging
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.probing import conditions
from service.lifecycle.probing.cases import OTHER_TASK, Case, cases
from service.lifecycle.probing.job import ProbeJob, judging_spec
from service.lifecycle.probing.judged import Shown, Unkept, judged
from service.lifecycle.probing.summary import About, report_of
from service.store import combining, grading_plans, model_requests, probes, runs, tasks
from service.store.clock import now
from service.store.database import Tx
from service.store.rows import GradingRow, RunRow

KIND = "judge_probe"
AT_ONCE = 4
"""Deliverables that are at work together."""
CALLS = 16
PEOPLE = "human_panel"
NEIGHBOURS = 5
"""Deliverables that are looked at for one of another task."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """One deliverable, and how its task is graded."""

    run: RunRow
    grader: GraderSpec
    row: GradingRow
    """As a grading that is never stored."""


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {probe_id, runs, gradings, failures, concerns, usd}.

    Raises Conflict ``nothing_to_probe``, Invalid ``plan_without_judges``, NotFound ``plan_not_found``, Unavailable
    ``gateway_unavailable``, JobCancelled.
    """
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    spec = ProbeJob.model_validate(job.spec)
    done = await ctx.in_transaction(partial(probes.of_operation, operation_id=job.id))
    if done is not None:
        return _result(done.id, done.report.model_dump(mode="json"))
    subjects = await ctx.in_transaction(partial(_subjects, job=job, spec=spec))
    calls = JudgeCalls(ctx.db, ctx.gateway, Turns(CALLS), database_patience_s=ctx.database_patience_s)
    try:
        probe = _Probe(ctx, job, spec, subjects, calls)
        found = await probe.run()
    finally:
        await calls.close()
    ctx.crash.reach("judge_probe.asked")
    return await _report(ctx, job, spec, subjects, found, probe.prompt)


class _Probe:
    def __init__(
        self, ctx: OperationContext, job: Job, spec: ProbeJob, subjects: Sequence[_Subject], calls: JudgeCalls
    ) -> None:
        self._ctx, self._job, self._subjects, self._calls = ctx, job, subjects, calls
        self._cases = cases(spec.sections, spec.repeats)
        self._grades = GradeContext(ctx.db, ctx.blobs, rooms=ctx.rooms, database_patience_s=ctx.database_patience_s)
        self._found: dict[tuple[str, str], Outcome] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self.prompt: str | None = None
        """Name@version of what was asked; null where this start had nothing to ask."""

    async def run(self) -> dict[tuple[str, str], Outcome]:
        self._found = await self._ctx.in_transaction(partial(probes.outcomes, operation_id=self._job.id))
        await self._tell()
        async with asyncio.TaskGroup() as group:
            for place in range(len(self._subjects)):
                group.create_task(self._one(place))
        return self._found

    async def _tell(self) -> None:
        await self._job.report(len(self._found), len(self._subjects) * len(self._cases))

    async def _one(self, place: int) -> None:
        subject = self._subjects[place]
        left = [case for case in self._cases if (subject.run.id, case.condition) not in self._found]
        if not left:
            return
        async with self._places:
            source = self._source(subject)
            try:
                document = await source.document()
            except GraderFault as error:
                for case in left:
                    await self._keep(case, Outcome(subject.run.id, None, cause=error.type))
                return
            for case in left:
                await self._keep(case, await self._judged(place, case, source, document))

    async def _judged(self, place: int, case: Case, source: EvidenceOf, document: EvidenceDocument) -> Outcome:
        subject, sources = self._subjects[place], [source]
        changed: EvidenceDocument | None = document if case.change is None else case.change(document)
        if case.condition == OTHER_TASK:
            changed, sources = await self._another(place, document)
        if changed is None:
            return Outcome(subject.run.id, None, cause="no_other_task")
        grader = grader_for(subject.grader.method)
        assert grader is not None
        unkept = Unkept()
        ctx = replace(self._grades, judging=Judging(self._ctx.db, self._calls, unkept))
        given = await input_of(ctx, subject.row, None)
        # Whether the files open is said of the files as they were delivered, not of what a condition makes of them.
        shown = replace(
            given, keep=None, integrity=None, evidence=Shown(changed, sources), seed=f"{given.seed}{case.condition}"
        )
        outcome = await judged(grader, shown, subject.run.id, unkept.models)
        self.prompt = unkept.prompt or self.prompt
        return outcome

    async def _another(
        self, place: int, document: EvidenceDocument
    ) -> tuple[EvidenceDocument | None, list[EvidenceOf]]:
        mine = self._subjects[place].run
        ring = [*self._subjects[place + 1 :], *self._subjects[:place]]
        for other in [s for s in ring if s.run.task_id != mine.task_id][:NEIGHBOURS]:
            source = self._source(other)
            try:
                found = conditions.another(document, [await source.document()], 0)
            except GraderFault:
                continue
            if found is not None:
                return found, [source]
        return None, []

    async def _keep(self, case: Case, outcome: Outcome) -> None:
        keep = partial(probes.keep, operation_id=self._job.id, condition=case.condition, outcome=outcome)
        await self._ctx.in_transaction(keep)
        self._found[outcome.run_id, case.condition] = outcome
        await self._tell()

    def _source(self, subject: _Subject) -> EvidenceOf:
        row = subject.row
        return EvidenceOf(self._grades.for_report, row.project_id, row.run_id, row.deliverable_digest)


async def _subjects(tx: Tx, *, job: Job, spec: ProbeJob) -> list[_Subject]:
    plan, content = await grading_plans.resolve(tx, job.project_id, spec.plan)
    found: list[_Subject] = []
    for run_id in spec.runs:
        run = await runs.get(tx, job.project_id, run_id)
        task = None if run is None else await tasks.get(tx, job.project_id, run.task_id)
        if run is None or task is None or run.deliverable_digest is None:
            continue
        grader = judging_spec([s for s, _ in specs_for(content, task.manifest.graders)], spec)
        found.append(_Subject(run, grader, await _unstored(tx, job, run, run.deliverable_digest, grader, plan)))
    if not found:
        raise Conflict("nothing_to_probe", "none of the runs has a sealed deliverable any more")
    return found


async def _unstored(tx: Tx, job: Job, run: RunRow, digest: str, grader: GraderSpec, plan: str) -> GradingRow:
    method = grader_for(grader.method)
    assert method is not None
    at = await now(tx)
    return GradingRow(
        id=job.id, project_id=job.project_id, run_id=run.id, deliverable_digest=digest, method=grader.method,
        method_version=method.version, settings=grader.settings, settings_digest=canonical_digest(grader.settings),
        plan=plan, primary=False, round=1, vote=1, state=VerdictState.GRADING, score=None, max_score=None, cause=None,
        detail={}, tries=1, queue="judges", priority=0, not_before=None, put_offs=0, regrade_id=None, created_at=at,
        started_at=at, graded_at=None,
    )  # fmt: skip


async def _report(
    ctx: OperationContext,
    job: Job,
    spec: ProbeJob,
    subjects: Sequence[_Subject],
    found: dict[tuple[str, str], Outcome],
    asked: str | None,
) -> dict[str, Any]:
    first = subjects[0]

    async def finish(tx: Tx) -> dict[str, Any]:
        ids = [s.run.id for s in subjects]
        cost = await _cost(tx, job, len(found))
        prompt = asked or str(first.grader.settings.get("prompt", "the method's own"))
        about = About(spec.judge, first.row.plan, first.grader.method, first.row.method_version, prompt, ids)
        stored = {PEOPLE: await probes.passed(tx, ids, PEOPLE)}
        if spec.compare_with is not None:
            said = await combining.verdicts_under(tx, job.project_id, spec.compare_with, ids)
            stored[spec.compare_with] = {
                run: v.score >= v.max_score
                for run, v in said.items()
                if v.score is not None and v.max_score is not None
            }
        known = {name: verdicts for name, verdicts in stored.items() if verdicts or name != PEOPLE}
        report = report_of(spec, about, found, known, cost)
        row = await probes.put(tx, job.project_id, job.id, report)
        return _result(row.id, report.model_dump(mode="json"))

    return await ctx.in_transaction(finish)


async def _cost(tx: Tx, job: Job, count: int) -> Cost:
    taken = (await model_requests.cost_of(tx, job.project_id, [job.id])).get(job.id)
    if taken is None:
        return Cost(requests=0, input_tokens=0, output_tokens=0, gradings=count)
    usd = None if taken.usd is None or taken.unknown else float(taken.usd)
    usage = taken.usage
    return Cost(
        requests=taken.requests,
        input_tokens=usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        usd=usd,
        usd_per_grading=usd / count if usd is not None and count else None,
        gradings=count,
    )


def _result(probe_id: str, report: dict[str, Any]) -> dict[str, Any]:
    names = ("failures", "concerns", "cost")
    return {"probe_id": probe_id, "runs": len(report["runs"]), **{name: report[name] for name in names}}
