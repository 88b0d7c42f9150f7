"""Scaffolds: ``name@version``, immutable by digest."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.agents import ScaffoldManifest
from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.store.catalogue import storable, take_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import ScaffoldRow
from service.store.tables import scaffolds

LISTING = Listing(
    scaffolds,
    ScaffoldRow.of,
    sorts_by(created_at=Sort(scaffolds.c.created_at), name=Sort(scaffolds.c.name, str)),
    {
        "name": one_of(scaffolds.c.name),
        "version": one_of(scaffolds.c.version),
        "kind": one_of(scaffolds.c.manifest["kind"].astext),
    },
)


async def register(tx: Tx, project_id: str, manifest: ScaffoldManifest) -> tuple[ScaffoldRow, bool]:
    """Return the project's scaffold with this content and whether it is new.

    Raises Conflict("scaffold_exists") when ``name@version`` has other content, Invalid("missing_blobs" | "wrong_size").
    """
    values = {
        "id": new_id("scf"),
        "project_id": project_id,
        "name": manifest.name,
        "version": manifest.version,
        "manifest": storable(manifest),
        "digest": manifest.digest(),
    }
    query = insert(scaffolds).values(values).on_conflict_do_nothing().returning(scaffolds)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is not None:
        await take_refs(tx, project_id, "scaffold", row["id"], manifest.files)
        return ScaffoldRow.of(row), True
    found = await find(tx, project_id, f"{manifest.name}@{manifest.version}")
    if found is None or found.digest != values["digest"]:
        raise Conflict("scaffold_exists", f"{manifest.name}@{manifest.version} exists with other content")
    return found, False


async def get(tx: Tx, project_id: str, scaffold_id: str) -> ScaffoldRow | None:
    """Return the project's scaffold; null if there is none (or it is another project's)."""
    query = select(scaffolds).where(scaffolds.c.id == scaffold_id, scaffolds.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ScaffoldRow.of(row)


async def find(tx: Tx, project_id: str, reference: str) -> ScaffoldRow | None:
    """Return the project's scaffold ``name@version``."""
    name, _, version = reference.rpartition("@")
    mine = (scaffolds.c.project_id == project_id, scaffolds.c.name == name, scaffolds.c.version == version)
    row = (await tx.execute(select(scaffolds).where(*mine))).mappings().one_or_none()
    return None if row is None else ScaffoldRow.of(row)


async def versions(tx: Tx, project_id: str, name: str) -> list[str]:
    """Return the versions that the project has of a scaffold, newest registration last."""
    mine = (scaffolds.c.project_id == project_id, scaffolds.c.name == name)
    query = select(scaffolds.c.version).where(*mine).order_by(scaffolds.c.created_at, scaffolds.c.id)
    return [str(version) for version in (await tx.execute(query)).scalars()]
