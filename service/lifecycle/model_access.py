"""What of the model gateway a run gets."""

from service.domain.agents import AgentSettings, AgentSpec, Driver
from service.domain.errors import Invalid
from service.domain.grants import Grant, GrantedModel
from service.domain.policies import NetworkRules, ProviderTools, default_provider_tools
from service.domain.tasks import NetworkPolicy
from service.lifecycle.client_facts import talks
from service.lifecycle.context import Context
from service.lifecycle.ports import Plant
from service.lifecycle.work import Work
from service.sandboxes.contract import Sandbox
from service.store import run_models
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow


async def find_models(tx: Tx, project_id: str, agent: AgentSpec) -> list[GrantedModel]:
    """Return what the catalogue has of the agent's models. Raises Invalid ``model_not_found`` if one is missing."""
    names = agent.models()
    found = await run_models.granted_models(tx, project_id, names) if names else []
    missing = set(names) - {one.spec.name for one in found}
    if missing:
        name = min(missing)
        raise Invalid("model_not_found", f"the project's catalogue has no model {name!r}", models=sorted(missing))
    return found


def provider_tools(network: NetworkRules, settings: AgentSettings) -> ProviderTools:
    return settings.provider_tools or default_provider_tools(network.policy)


def needs_gateway(work: Work) -> bool:
    settings = AgentSettings.of(work.agent.settings)
    asks = bool(work.models or settings.services) or talks(work.task, work.run.driver, work.scaffold)
    return asks or work.run.network.policy is not NetworkPolicy.NONE


async def open_gateway(ctx: Context, attempt: AttemptRow, work: Work, sandbox: Sandbox, seconds_left: float) -> None:
    """Let the attempt's tokens reach its models, if it has any. May be repeated. Raises Unavailable, SandboxError."""
    if not needs_gateway(work):
        return
    settings = AgentSettings.of(work.agent.settings)

    async def read(tx: Tx) -> Grant:
        return Grant(
            run_id=attempt.run_id,
            attempt=attempt.n,
            fence=attempt.fence,
            project_id=work.run.project_id,
            token_hashes=await run_models.token_hashes(tx, attempt.run_id, attempt.n),
            models=list(work.models),
            services=await run_models.granted_services(tx, work.run.project_id, settings.services),
            provider_tools=work.run.provider_tools,
            network=work.run.network,
            budget=work.run.budget,
            seconds_left=max(1.0, seconds_left),
            max_output_tokens=settings.max_output_tokens,
            replay_of=work.run.replay_of,
            public=work.run.driver is Driver.REMOTE,
        )

    grant = await retrying(ctx.db, read, ctx.timing.database_patience_s)
    await ctx.models.open(grant, _planter(work, sandbox))


def _planter(work: Work, sandbox: Sandbox) -> Plant | None:
    """Our loops and remote drivers ask from outside; what they run inside still has the proxy and the services."""
    outside = work.run.driver is not Driver.KIT
    return None if outside and work.run.network.policy is NetworkPolicy.NONE else sandbox.plant
