"""Which scaffold an agent means: ``latest`` becomes a version, a shipped scaffold is registered when first used."""

from service.domain.agents import AgentSpec
from service.scaffolds import shipped
from service.store import scaffolds
from service.store.database import Tx


async def choose(tx: Tx, project_id: str, spec: AgentSpec) -> AgentSpec:
    """Return ``spec`` with a scaffold ``name@version`` that the project has, if there is one.

    A scaffold that the project registered itself wins over a shipped one of the same name and version.
    """
    reference = await versioned(tx, project_id, spec.scaffold)
    manifest = shipped.find(reference)
    if manifest is not None and await scaffolds.find(tx, project_id, reference) is None:
        await scaffolds.register(tx, project_id, manifest)
    return spec.model_copy(update={"scaffold": reference})


async def versioned(tx: Tx, project_id: str, reference: str) -> str:
    """Return ``name@version``, for ``name@latest`` the newest that the project or the service has; else as it is."""
    name, _, version = reference.rpartition("@")
    if version != shipped.LATEST:
        return reference
    shipped_ones = [row.version for row in shipped.SHIPPED if row.name == name]
    newest = shipped.newest([*await scaffolds.versions(tx, project_id, name), *shipped_ones])
    return f"{name}@{newest or version}"
