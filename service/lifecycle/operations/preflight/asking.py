"""The requests of a preflight: one to each model at each effort, one to each judge, at most so many at once."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from service.domain.errors import Unavailable
from service.domain.judging import JudgeSpec
from service.graders.contract import GraderBusy, GraderFault, InvalidVote, Question
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.operations.model_asking import ANSWER_S, asked_of
from service.lifecycle.operations.model_questions import questions
from service.lifecycle.operations.preflight.checks import Ask
from service.lifecycle.operations.preflight.findings import Findings
from service.lifecycle.operations.preflight.steps import Steps, together
from service.store import models
from service.store.rows_models import ModelRow

AT_ONCE = 4
_JUDGED = Question(
    system="You answer short questions.", text="Reply with the word ready.", template="preflight@1", template_text=""
)


async def ask_models(
    ctx: OperationContext, job: Job, asks: Mapping[Ask, Sequence[str]], findings: Findings, steps: Steps
) -> None:
    """Ask each once; what fails is wrong with every agent that hangs on it.

    Raises Unavailable (there is no gateway, or it is away), JobCancelled.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def one(ask: Ask, agents: Sequence[str]) -> None:
        async with places:
            detail = await _asked(ctx, job.project_id, ask)
        if detail:
            findings.wrong(agents, f"model {ask}", detail)
        await steps.ended(f"model {ask}: {_word(detail)}")

    await together(one(ask, agents) for ask, agents in asks.items())


async def ask_judges(
    ctx: OperationContext, job: Job, judges: Sequence[JudgeSpec], findings: Findings, steps: Steps
) -> None:
    """Ask each judge one small question, with its own settings. Raises Unavailable (there is no gateway), JobCancelled."""
    if not judges:
        return
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    calls = JudgeCalls(ctx.db, ctx.gateway, Turns(AT_ONCE), database_patience_s=ctx.database_patience_s)
    try:
        await together(_judge(calls, job, judge, findings, steps) for judge in judges)
    finally:
        await calls.close()


async def _judge(calls: JudgeCalls, job: Job, judge: JudgeSpec, findings: Findings, steps: Steps) -> None:
    detail = ""
    try:
        async with asyncio.timeout(ANSWER_S):
            model = await calls.model(job.project_id, judge)
            await calls.ask(job.project_id, model, judge, lambda: _JUDGED, job.id)
    except (GraderBusy, GraderFault) as error:
        detail = error.detail or error.type
    except InvalidVote:
        pass  # an answer that is no vote is an answer all the same
    except TimeoutError:
        detail = f"no answer within {ANSWER_S:.0f} s"
    findings.judge(judge.key, judge.model, detail)
    await steps.ended(f"judge {judge.key}: {_word(detail)}")


def _word(detail: str) -> str:
    return "failed" if detail else "ok"


async def _asked(ctx: OperationContext, project_id: str, ask: Ask) -> str:
    """Return what was wrong, as the provider said it; empty: it answered."""
    row = await ctx.in_transaction(partial(models.find, project_id=project_id, name=ask.model))
    if row is None:
        return f"the project's catalogue has no model {ask.model!r}"
    if ask.effort and ask.effort not in row.spec.efforts:
        return f"{ask.model} takes no effort {ask.effort!r}; known: {', '.join(row.spec.efforts) or 'none'}"
    return await _answer(ctx, row, ask)


async def _answer(ctx: OperationContext, row: ModelRow, ask: Ask) -> str:
    known = {question.name: question for question in questions(row.spec)}
    question = known.get(f"effort:{ask.effort}") or known.get("stream")
    if question is None:  # a private protocol, of which nobody here knows how to ask
        return ""
    found = await asked_of(ctx.gateway, row, question)
    if found["state"] == "ok":
        return ""
    status = "" if found["status"] is None else f"HTTP {found['status']}: "
    return f"{status}{found['detail']}"
