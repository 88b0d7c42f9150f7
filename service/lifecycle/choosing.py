"""Whether an agent's parts go together: its model is in the catalogue, its scaffold can say what it asks for (A5)."""

from service.domain.agents import AgentSettings, AgentSpec
from service.domain.errors import NotFound
from service.domain.limits import Limits
from service.domain.tasks import TaskManifest
from service.lifecycle.model_access import find_models
from service.lifecycle.submit import check_plan
from service.scaffolds.registry import surface_for
from service.store import scaffolds
from service.store.database import Tx

_ANY_TASK = TaskManifest(name="any", instruction="Do it.")


async def check_agent(tx: Tx, project_id: str, spec: AgentSpec) -> None:
    """Refuse at creation what every run of the agent would be refused for.

    An agent without a model is left to its first run: what it may do depends on the task. Raises NotFound
    ("scaffold_not_found"), Invalid ("model_not_found", "unsupported_effort", "surface_not_supported", "bad_settings" …).
    """
    scaffold = await scaffolds.find(tx, project_id, spec.scaffold)
    if scaffold is None:
        raise NotFound("scaffold_not_found", f"no scaffold {spec.scaffold}")
    surface_for(scaffold.manifest, AgentSettings.of(spec.settings))
    models = await find_models(tx, project_id, spec)
    if spec.model is not None:
        check_plan(_ANY_TASK, spec, scaffold.manifest, Limits(), models)
