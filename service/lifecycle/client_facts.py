"""What only a task's simulated client knows: brought with the task, or made once by a model before its first run (A23).

Either way a hidden asset of the task: it goes into requests of purpose ``client``, and to graders.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.domain.agents import Driver
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.grants import GrantedModel
from service.domain.tasks import FileRef, TaskManifest
from service.models.clients import check_dialect
from service.scaffolds import templates
from service.scaffolds.contract import Scaffold
from service.scaffolds.loops import LoopScaffold
from service.store import client_facts, run_models
from service.store.client_facts import Recipe
from service.store.database import Tx
from service.store.rows import TaskRow

TEMPLATE = "client_facts@1"
MADE = "client-facts.md"
"""Where facts that were made would lie among the hidden files."""
_TEXTS = Path(__file__).parent / "prompt_texts"


@dataclass(frozen=True, slots=True)
class Prompt:
    template: str
    """Its text, before anything was put in."""
    text: str


async def find_facts(tx: Tx, task_id: str, project_id: str, manifest: TaskManifest) -> FileRef | None:
    """Return the task's private facts; null where it has no client, or they are not made yet."""
    imported = manifest.imported_facts()
    if imported is not None or manifest.client is None:
        return imported
    made = await client_facts.get(tx, project_id, task_id)
    return None if made is None else FileRef(path=MADE, sha256=made.sha256, size_bytes=made.size_bytes)


def talks(manifest: TaskManifest, driver: Driver, scaffold: Scaffold) -> bool:
    """Tell whether a run may ask the task's client: those of loops with the tool for it and of remote drivers may."""
    asks = isinstance(scaffold, LoopScaffold) and scaffold.asks_client
    return manifest.client is not None and (driver is Driver.REMOTE or (driver is Driver.LOOP and asks))


async def check_client(tx: Tx, task: TaskRow, own_model: str | None) -> None:
    """Refuse a run whose client could not answer. Raises Invalid ``client_facts_missing``, ``client_model_needed``,
    ``model_not_found``."""
    name = client_model(task.manifest, own_model)
    await _granted(tx, task.project_id, name)
    if await find_facts(tx, task.id, task.project_id, task.manifest) is None:
        how = f"`workstead tasks facts make {task.id}` or POST /v1/tasks/{task.id}/client-facts"
        raise Invalid("client_facts_missing", f"the task's client knows nothing yet: {how} makes it", task=task.id)


def client_model(manifest: TaskManifest, own_model: str | None) -> str:
    """Return the catalogue name of who plays the client. Raises Invalid ``client_model_needed``."""
    name = None if manifest.client is None else manifest.client.model or own_model
    if name is None:
        raise Invalid("client_model_needed", "neither the task nor the agent names a model that could play the client")
    return name


async def check_recipe(tx: Tx, task: TaskRow, recipe: Recipe) -> None:
    """Refuse to make what cannot or need not be made.

    Raises NotFound ``no_client``, Conflict ``client_facts_imported``, ``client_facts_exist`` (others), Invalid
    ``model_not_found``, ``dialect_without_client``, ``unknown_template``.
    """
    if task.manifest.client is None:
        raise NotFound("no_client", "the task has no client")
    if task.manifest.client.facts is not None:
        raise Conflict("client_facts_imported", "the task brought its client's facts")
    made = await client_facts.get(tx, task.project_id, task.id)
    if made is not None and Recipe(made.model, made.template, made.seed) != recipe:
        detail = f"they were made by {made.model!r} with {made.template}, seed {made.seed}, and stay"
        raise Conflict("client_facts_exist", detail)
    template_text(recipe.template)
    check_dialect((await _granted(tx, task.project_id, recipe.model)).spec.dialect)


def prompt_for_facts(manifest: TaskManifest, recipe: Recipe) -> Prompt:
    """Return what the model is asked. Raises Invalid ``unknown_template``."""
    files = "\n".join(f"{f.path} ({f.size_bytes} bytes)" for f in manifest.visible[:1000]) or "(none)"
    values = {"instruction": manifest.instruction, "visible_files": files, "seed": str(recipe.seed)}
    text = template_text(recipe.template)
    return Prompt(text, templates.render(text, values))


@cache
def template_text(name: str) -> str:
    """Raises Invalid ``unknown_template``."""
    known = {path.stem.replace("-", "@"): path for path in sorted(_TEXTS.glob("client_facts-*.md"))}
    if name not in known:
        raise Invalid("unknown_template", f"no template of facts is called {name[:80]!r}", templates=sorted(known))
    return known[name].read_text(encoding="utf-8")


async def _granted(tx: Tx, project_id: str, name: str) -> GrantedModel:
    found = await run_models.granted_models(tx, project_id, [name])
    if not found:
        raise Invalid("model_not_found", f"the project's catalogue has no model {name!r} for the task's client")
    return found[0]
