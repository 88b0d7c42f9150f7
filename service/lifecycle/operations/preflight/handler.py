"""Operation ``preflight`` (NEEDS B3): every model, judge and scaffold of an evaluation is tried out before its runs are made.

What fails sends the evaluation back to its draft, with what was wrong by agent; nothing is started. A start after a crash
finds the runs of the first one and asks the models again: they are small questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from service.domain.errors import Conflict, Expected, NotFound, Unavailable
from service.domain.grading_plans import specs_for
from service.domain.judging import JudgeSpec
from service.domain.models import ModelSpec
from service.domain.tasks import Strict
from service.lifecycle.evaluations import starting
from service.lifecycle.operations.contract import Job, JobCancelled, OperationContext
from service.lifecycle.operations.preflight.asking import ask_judges, ask_models
from service.lifecycle.operations.preflight.checks import Ask, Member, Trial, asks_of, count_trials, trials_of
from service.lifecycle.operations.preflight.findings import Findings
from service.lifecycle.operations.preflight.steps import Steps
from service.lifecycle.operations.preflight.trying import Tries, discard
from service.lifecycle.plans import judges_of
from service.store import agents, grading_plans, models, scaffolds
from service.store.database import Tx
from service.store.evaluations import evaluations, preflights
from service.store.evaluations.members import agents_of

KIND = preflights.KIND


class PreflightSpec(Strict):
    evaluation_id: str
    actor: str | None = None
    """Token that asked for the start; null: the evaluation's author."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be tried out."""

    asks: dict[Ask, list[str]]
    judges: list[JudgeSpec]
    trials: list[Trial]
    untried: int
    agents: list[str]
    actor: str


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {evaluation_id, started, ok, agents, judges, runs, notes}.

    Raises NotFound ``evaluation_not_found``, Conflict ``evaluation_not_checking``, Unavailable ``gateway_unavailable``,
    JobCancelled; the evaluation is then a draft again, but for Unavailable, after which it is tried once more.
    """
    spec = PreflightSpec.model_validate(job.spec)
    plan = await ctx.in_transaction(partial(_plan, job=job, spec=spec))
    findings = Findings(job.id, {agent: [] for agent in plan.agents})
    try:
        await _try_out(ctx, job, plan, findings)
        ctx.crash.reach("preflight.tried")
        return await ctx.in_transaction(partial(_conclude, spec=spec, plan=plan, findings=findings))
    except Unavailable:
        raise
    except JobCancelled:
        findings.note("the preflight was cancelled")
        await ctx.in_transaction(partial(discard, job=job))
        await ctx.in_transaction(partial(_back, spec=spec, findings=findings))
        raise
    except Expected as error:
        findings.note(f"not started: {error.type}: {error.detail}")
        await ctx.in_transaction(partial(_back, spec=spec, findings=findings))
        raise


async def _try_out(ctx: OperationContext, job: Job, plan: _Plan, findings: Findings) -> None:
    steps = Steps(job, len(plan.asks) + len(plan.judges) + len(plan.trials))
    await steps.begin()
    await ask_models(ctx, job, plan.asks, findings, steps)
    await ask_judges(ctx, job, plan.judges, findings, steps)
    await Tries(ctx, job, findings, steps).run(plan.trials)
    if plan.untried:
        findings.note(f"{plan.untried} more pairs of scaffold and environment were not tried out")


async def _conclude(tx: Tx, *, spec: PreflightSpec, plan: _Plan, findings: Findings) -> dict[str, Any]:
    await evaluations.turn(tx, spec.evaluation_id)
    if not await preflights.is_checked_by(tx, spec.evaluation_id, findings.operation_id):
        raise Conflict("evaluation_not_checking", "the evaluation was stopped, or is checked by another operation")
    result = findings.as_json()
    if not findings.ok:
        await _leave(tx, spec, findings)
        return {"evaluation_id": spec.evaluation_id, "started": False, **result}
    await starting.start(tx, spec.evaluation_id, plan.actor)
    await preflights.passed(tx, spec.evaluation_id, result)  # after the runs: see the order of locks
    return {"evaluation_id": spec.evaluation_id, "started": True, **result}


async def _back(tx: Tx, *, spec: PreflightSpec, findings: Findings) -> None:
    await evaluations.turn(tx, spec.evaluation_id)
    await _leave(tx, spec, findings)


async def _leave(tx: Tx, spec: PreflightSpec, findings: Findings) -> None:
    result = findings.as_json()
    if await preflights.failed(tx, spec.evaluation_id, findings.operation_id, {**result, "ok": False}):
        wrong = sorted(agent for agent, found in result["agents"].items() if not found["ok"])
        detail = {"agents": wrong, "judges": [k for k, j in result["judges"].items() if not j["ok"]]}
        await evaluations.note(tx, spec.evaluation_id, KIND, "preflight_failed", {**detail, "notes": findings.notes})


async def _plan(tx: Tx, *, job: Job, spec: PreflightSpec) -> _Plan:
    row = await evaluations.get(tx, job.project_id, spec.evaluation_id)
    if row is None:
        raise NotFound("evaluation_not_found", f"no evaluation {spec.evaluation_id}")
    if not await preflights.is_checked_by(tx, row.id, job.id):
        raise Conflict("evaluation_not_checking", "the evaluation was stopped, or is checked by another operation")
    members = await _members(tx, job.project_id, spec.evaluation_id)
    places = await preflights.environments(tx, spec.evaluation_id)
    trials = trials_of(members, places)
    return _Plan(
        asks=asks_of(members, await _models(tx, job.project_id, members)),
        judges=await _judges(tx, job.project_id, spec.evaluation_id, row.plan),
        trials=trials,
        untried=count_trials(members, places) - len(trials),
        agents=[member.id for member in members],
        actor=spec.actor or row.author,
    )


async def _members(tx: Tx, project_id: str, evaluation_id: str) -> list[Member]:
    found: list[Member] = []
    for one in await agents_of(tx, evaluation_id):
        agent = await agents.get(tx, project_id, one.agent_id)
        scaffold = None if agent is None else await scaffolds.get(tx, project_id, agent.scaffold_id)
        if agent is None or scaffold is None:
            raise NotFound("agent_not_found", f"no agent {one.agent_id}")
        found.append(Member(agent.id, agent.label, agent.spec, scaffold.id, scaffold.manifest))
    return found


async def _models(tx: Tx, project_id: str, members: Sequence[Member]) -> dict[str, ModelSpec]:
    rows = [await models.find(tx, project_id, name) for name in {n for m in members for n in m.spec.models()}]
    return {row.name: row.spec for row in rows if row is not None}


async def _judges(tx: Tx, project_id: str, evaluation_id: str, plan: str) -> list[JudgeSpec]:
    """Return each judge once, with everything that could change its opinion."""
    content = await grading_plans.spec_of(tx, project_id, plan)
    found = specs_for(content, await preflights.graders(tx, evaluation_id))
    judges = {judge.key: judge for one, _ in found for judge in judges_of(one.settings)}
    return [judges[key] for key in sorted(judges)]
