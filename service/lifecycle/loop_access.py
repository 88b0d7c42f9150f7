"""How a loop of ours reaches its model: by a run token of its own, made anew by every process that drives it."""

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.lifecycle.context import Context
from service.lifecycle.loop_drive import LoopAccess
from service.lifecycle.work import Work
from service.models.messages import Reach
from service.store import tokens
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow


async def loop_access(ctx: Context, attempt: AttemptRow, work: Work) -> LoopAccess:
    """Mint a token and say where it opens. Raises Invalid ``model_needed``, Unavailable."""
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
    spec = work.models[0].spec
    settings = AgentSettings.of(work.agent.settings)
    return LoopAccess(
        Reach(
            socket=ctx.models.local_socket,
            token=secret,
            upstream_id=spec.upstream_id,
            dialect=spec.dialect,
            max_output_tokens=settings.max_output_tokens or spec.max_output_tokens,
            reasoning=bool(spec.efforts),
            chat=bool(settings.further.get("chat")),
        )
    )
