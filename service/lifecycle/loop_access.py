"""How a loop of ours reaches its models: by a run token of its own, made anew by every process that drives it.

The model that plays the task's client is asked with the token of our own processes: its requests have the purpose
``client`` in the ledger and do not draw on the agent's budget; the task's number of messages bounds them.
"""

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.domain.models import ModelSpec
from service.lifecycle.client_facts import client_model, talks
from service.lifecycle.context import Context
from service.lifecycle.loop_drive import LoopAccess
from service.lifecycle.own_side import own_headers, reach_of
from service.lifecycle.work import Work
from service.models.messages import Reach
from service.store import run_models, tokens
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow


async def loop_access(ctx: Context, attempt: AttemptRow, work: Work) -> LoopAccess:
    """Mint a token and say where it opens. Raises Invalid ``model_needed``, ``model_not_found``, Unavailable."""
    if not work.models or work.agent.model is None:
        raise Invalid("model_needed", "this scaffold needs a model")

    async def mint(tx: Tx) -> str:
        _, secret = await tokens.mint(
            tx,
            work.run.project_id,
            ["run"],
            f"run {attempt.run_id}",
            kind="run",
            run_id=attempt.run_id,
            attempt=attempt.n,
        )
        return secret

    secret = await retrying(ctx.db, mint, ctx.timing.database_patience_s)
    settings = AgentSettings.of(work.agent.settings)
    agent = reach_of(ctx.models.local_socket, work.models[0].spec, secret, chat=bool(settings.further.get("chat")))
    talking = talks(work.task, work.run.driver, work.scaffold)
    return LoopAccess(agent, await client_reach(ctx, attempt, work) if talking else None)


async def client_reach(ctx: Context, attempt: AttemptRow, work: Work) -> Reach:
    """Return the way to the model that plays the task's client: the task's own choice, else the agent's.

    Raises Invalid ``client_model_needed``, ``model_not_found``, Unavailable.
    """
    name = client_model(work.task, work.agent.model)

    async def find(tx: Tx) -> list[ModelSpec]:
        found = await run_models.granted_models(tx, work.run.project_id, [name])
        return [one.spec for one in found]

    found = await retrying(ctx.db, find, ctx.timing.database_patience_s)
    if not found:
        raise Invalid("model_not_found", f"the project's catalogue has no model {name!r} for the task's client")
    headers = own_headers(work.run.project_id, "client", name)
    run = {"x-workstead-run": f"{attempt.run_id}/{attempt.n}"}
    return reach_of(ctx.models.local_socket, found[0], ctx.models.service_token(), headers={**headers, **run})
