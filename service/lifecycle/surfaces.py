"""What a run's driver drives: read from its agent and scaffold, which never change."""

from service.domain.agents import SCREENS, AgentSettings, Driver, ScaffoldManifest, Surface, surface_of
from service.domain.errors import NotFound
from service.store import agents, scaffolds
from service.store.database import Tx
from service.store.rows import RunRow


async def surface_of_run(tx: Tx, run: RunRow) -> tuple[Surface, ScaffoldManifest]:
    """Return the surface, and the scaffold. Raises NotFound (deleted meanwhile)."""
    agent = await agents.get(tx, run.project_id, run.agent_id)
    scaffold = None if agent is None else await scaffolds.get(tx, run.project_id, agent.scaffold_id)
    if agent is None or scaffold is None:
        raise NotFound("not_found")
    return surface_of(scaffold.manifest, AgentSettings.of(agent.spec.settings)), scaffold.manifest


async def has_screen(tx: Tx, run: RunRow) -> bool:
    if run.driver is Driver.EXTERNAL:
        return False
    return (await surface_of_run(tx, run))[0] in SCREENS
