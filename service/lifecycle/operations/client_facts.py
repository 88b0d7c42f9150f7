"""Operation ``client_facts``: a model writes down what a task's simulated client knows, once per task (NEEDS A23).

Asked at the gateway's own side with purpose ``client``: in the ledger, of no run. A start after a crash asks again, unless
the first one's facts are kept already.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import Field

from service.domain.cleaning import clean_str
from service.domain.errors import Conflict, Invalid, NotFound, Unavailable
from service.domain.models import ModelSpec
from service.domain.tasks import Strict
from service.lifecycle.client_facts import check_recipe, prompt_for_facts
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.own_side import OwnWay, own_headers, reach_of
from service.models.clients import client_for
from service.models.messages import Answer, Ask, GatewayAway, ModelClient, Reach, UserTurn
from service.store import client_facts, run_models, tasks
from service.store.client_facts import NewFacts, Recipe
from service.store.database import Tx
from service.store.rows import TaskRow
from service.store.rows_models import ClientFactsRow

KIND = "client_facts"
OUTPUT_TOKENS = 8192
"""A thought before it included."""
MOST_CHARS = 64_000
SYSTEM = "You write fact sheets for simulated clients. You write nothing but the sheet."
Connect = Callable[[Reach], ModelClient]


class FactsSpec(Strict):
    task_id: str
    model: str
    """Catalogue name."""
    template: str
    seed: int = Field(ge=0)
    author: str
    """The token that asked for it."""

    @property
    def recipe(self) -> Recipe:
        return Recipe(self.model, self.template, self.seed)


async def run(ctx: OperationContext, job: Job, connect: Connect = client_for) -> dict[str, Any]:
    """Return {task_id, created, model, reported_model, template, seed, usage}; never the facts or their digest.

    Raises Invalid ``facts_not_made`` (the model gave none that can be used), ModelRefused, Unavailable (no gateway, or the
    provider fails), NotFound, Conflict (there are others), JobCancelled.
    """
    spec = FactsSpec.model_validate(job.spec)
    task, model, known = await ctx.in_transaction(partial(_load, job=job, spec=spec))
    if known is not None:
        return _result(known, created=False)
    await job.report(0, 1)
    prompt = prompt_for_facts(task.manifest, spec.recipe)
    answer = await _ask(_reach(ctx.gateway, job.project_id, spec, model), prompt.text, connect)
    text = _usable(answer)
    ctx.crash.reach("client_facts.asked")
    facts, template, asked = [
        await asyncio.to_thread(ctx.blobs.store_bytes, part.encode()) for part in (text, prompt.template, prompt.text)
    ]
    usage = None if answer.usage is None else answer.usage.model_dump(mode="json")
    new = NewFacts(facts, template, asked, spec.recipe, answer.model, usage, spec.author, job.id)
    row, created = await ctx.in_transaction(partial(_keep, project_id=job.project_id, task_id=task.id, new=new))
    job.say(f"{len(text)} characters by {spec.model}")
    await job.report(1, 1)
    return _result(row, created=created)


async def _load(tx: Tx, *, job: Job, spec: FactsSpec) -> tuple[TaskRow, ModelSpec, ClientFactsRow | None]:
    task = await tasks.get(tx, job.project_id, spec.task_id)
    if task is None:
        raise NotFound("task_not_found", f"no task {spec.task_id}")
    await check_recipe(tx, task, spec.recipe)
    (model,) = await run_models.granted_models(tx, job.project_id, [spec.model])
    return task, model.spec, await client_facts.get(tx, job.project_id, task.id)


async def _keep(tx: Tx, *, project_id: str, task_id: str, new: NewFacts) -> tuple[ClientFactsRow, bool]:
    row, created = await client_facts.put(tx, project_id, task_id, new)
    if not created and Recipe(row.model, row.template, row.seed) != new.recipe:
        raise Conflict("client_facts_exist", "others were made meanwhile, and stay")
    return row, created


def _reach(way: OwnWay | None, project_id: str, spec: FactsSpec, model: ModelSpec) -> Reach:
    if way is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    try:
        token = way.token()
    except OSError as error:
        raise Unavailable("gateway_unavailable", "the gateway has not started yet") from error
    return reach_of(str(way.socket), model, token, headers=own_headers(project_id, "client", spec.model))


async def _ask(reach: Reach, prompt: str, connect: Connect) -> Answer:
    client = connect(reach)
    try:
        return await client.ask(Ask(SYSTEM, [UserTurn(text=prompt)], max_output_tokens=OUTPUT_TOKENS))
    except GatewayAway as error:
        raise Unavailable(error.type, error.detail) from error
    finally:
        await client.close()


def _usable(answer: Answer) -> str:
    """Return the sheet. One that was cut off, refused or is empty is none: Invalid ``facts_not_made``."""
    text = clean_str(answer.text)[0].strip()
    if answer.stop != "end" or not text:
        raise Invalid("facts_not_made", f"the model's answer is no sheet of facts: {answer.stop_detail or answer.stop}")
    if len(text) > MOST_CHARS:
        raise Invalid("facts_not_made", f"the model wrote {len(text)} characters; at most {MOST_CHARS} are kept")
    return f"{text}\n"


def _result(row: ClientFactsRow, *, created: bool) -> dict[str, Any]:
    names = ("task_id", "model", "reported_model", "template", "seed", "usage")
    return {**{name: getattr(row, name) for name in names}, "created": created}
