"""Operation ``model_ratings``: the models among a campaign's raters rate what there is for them.

Each rating is written as it comes: a start after a crash goes on with what is left.
"""

from functools import partial
from typing import Any

from service.domain.errors import Conflict, Unavailable
from service.lifecycle.campaigns.model_raters import ModelRater
from service.lifecycle.integrity import ReportContext
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.operations.contract import Job, OperationContext
from service.store.campaigns import campaigns, raters
from service.store.database import Tx
from service.store.rows_campaigns import RaterRow

KIND = "model_ratings"
CALLS = 8


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {raters: {pseudonym: {rated, skipped, or why it stopped: n}}}.

    Raises Conflict ``campaign_not_open``, ``no_models``; Unavailable ``gateway_unavailable``; JobCancelled.
    """
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    campaign_id = str(job.spec["campaign_id"])
    people = await ctx.in_transaction(partial(_models, project_id=job.project_id, campaign_id=campaign_id))
    report = ReportContext(ctx.db, ctx.blobs, ctx.rooms, ctx.database_patience_s)
    calls = JudgeCalls(ctx.db, ctx.gateway, Turns(CALLS), database_patience_s=ctx.database_patience_s)
    said: dict[str, dict[str, int]] = {}
    done = 0

    async def told() -> None:
        nonlocal done
        done += 1
        await job.report(done, None)

    try:
        for person in people:
            rater = ModelRater(report, calls, campaign_id, person)
            await rater.run(told)
            said[person.pseudonym] = dict(sorted(rater.said.items()))
    finally:
        await calls.close()
    return {"raters": said}


async def _models(tx: Tx, *, project_id: str, campaign_id: str) -> list[RaterRow]:
    campaign = await campaigns.get(tx, project_id, campaign_id)
    if campaign is None:
        raise Conflict("campaign_not_open", "the campaign is gone")
    campaigns.check_open(campaign)
    people = [r for r in await raters.of_campaign(tx, campaign_id) if r.judge is not None and r.state == "active"]
    if not people:
        raise Conflict("no_models", "no rater of the campaign is a model")
    return people
