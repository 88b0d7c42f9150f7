"""Operation ``model_check``: what an entry of the catalogue can do, asked through the gateway's own side (NEEDS C4)."""

from typing import Any

from service.domain.errors import Conflict, NotFound
from service.domain.tasks import Strict
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.operations.model_asking import asked_of
from service.lifecycle.operations.model_questions import questions
from service.store import models
from service.store.database import Tx
from service.store.rows_models import ModelRow


class CheckSpec(Strict):
    model_id: str
    revision: int


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {ok, checks: [{name, state, status, seconds, detail}], usage, revision}.

    Raises NotFound, Conflict (the entry was replaced meanwhile), Unavailable (no gateway), JobCancelled.
    """
    spec = CheckSpec.model_validate(job.spec)
    model = await _load(ctx, job.project_id, spec.model_id)
    asked = questions(model.spec)
    checks: list[dict[str, Any]] = []
    for question in asked:
        await job.report(len(checks), len(asked))
        checks.append(await asked_of(ctx.gateway, model, question))
        job.say(f"{question.name}: {checks[-1]['state']}")
    await job.report(len(checks), len(asked))
    first = checks[0] if checks else {"state": "skipped", "usage": None}
    result = {"ok": first["state"] == "ok", "checks": checks, "usage": first["usage"], "revision": model.revision}

    async def write(tx: Tx) -> None:
        if not await models.checked(tx, model.id, model.revision, result):
            raise Conflict("model_changed", "the entry or its credential was replaced during the check")

    await ctx.in_transaction(write)
    return result


async def _load(ctx: OperationContext, project_id: str, model_id: str) -> ModelRow:
    async def read(tx: Tx) -> ModelRow | None:
        return await models.get(tx, project_id, model_id)

    row = await ctx.in_transaction(read)
    if row is None:
        raise NotFound("model_not_found", "the model was deleted")
    return row
