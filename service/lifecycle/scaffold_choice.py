"""Which scaffold an agent means: ``latest`` becomes a version, a shipped scaffold is registered when first used."""

from service.domain.agents import AgentSpec
from service.scaffolds import shipped
from service.store import scaffolds
from service.store.database import Tx


async def choose(tx: Tx, project_id: str, spec: AgentSpec) -> AgentSpec:
    """Return ``spec`` with a scaffold ``name@version`` that the project has, if there is one.

    A scaffold that the project registered itself wins over a shipped one of the same name and version.
    """
    name, _, version = spec.scaffold.rpartition("@")
    if version == shipped.LATEST:
        offered = [
            *await scaffolds.versions(tx, project_id, name),
            *(r.version for r in shipped.SHIPPED if r.name == name),
        ]
        version = shipped.newest(offered) or version
    reference = f"{name}@{version}"
    manifest = shipped.find(reference)
    if manifest is not None and await scaffolds.find(tx, project_id, reference) is None:
        await scaffolds.register(tx, project_id, manifest)
    return spec.model_copy(update={"scaffold": reference})
