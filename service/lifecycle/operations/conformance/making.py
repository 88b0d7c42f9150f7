"""What a conformance case needs in the catalogue before its run: the built-in task, a model, an agent."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.agents import SCREENS, AgentSettings, AgentSpec, Driver, ScaffoldManifest, surface_of
from service.domain.credentials import Purpose
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.grants import GrantedModel
from service.domain.models import Dialect, ModelSpec
from service.lifecycle.plan_inputs import plan_context
from service.scaffolds.conformance.cases import Case
from service.scaffolds.conformance.task import INPUT, task
from service.scaffolds.registry import scaffold_for
from service.store import agents, blob_refs, credentials, models, tasks
from service.store.database import Tx
from service.store.rows import ScaffoldRow

_UPSTREAM_IDS = {
    Dialect.ANTHROPIC: "claude-sonnet-4-6",
    Dialect.OPENAI: "gpt-5.5",
    Dialect.GEMINI: "gemini-2.5-pro",
}
"""Ids that programs know, so that none falls back to guesses about an unknown model."""
_SCREEN_IDS = {**_UPSTREAM_IDS, Dialect.GEMINI: "gemini-3.5-pro"}
"""Of models that have a computer tool of their provider's."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The scaffold under test."""

    scaffold: ScaffoldRow
    driver: Driver
    dialect: Dialect | None
    """What its model speaks; null: it asks none."""

    @property
    def reference(self) -> str:
        return f"{self.scaffold.name}@{self.scaffold.version}"

    @property
    def screen(self) -> bool:
        return drives_screen(self.scaffold.manifest)

    def speaks(self, dialect: Dialect) -> bool:
        """Tell whether it can be planned with a model of this dialect."""
        try:
            _try_plan(self.scaffold.manifest, dialect)
        except Invalid:
            return False
        return True


def drives_screen(manifest: ScaffoldManifest) -> bool:
    """Tell whether its agents drive a screen, if their settings say nothing."""
    return surface_of(manifest, AgentSettings()) in SCREENS


def subject_of(scaffold: ScaffoldRow) -> Subject:
    """Find out what kind of model the scaffold can be planned with. Raises Invalid, its own, where there is none."""
    driver = scaffold_for(scaffold.manifest.kind).driver
    if driver not in {Driver.KIT, Driver.LOOP}:
        return Subject(scaffold, driver, None)
    if scaffold.manifest.dialect is not None:
        return Subject(scaffold, driver, scaffold.manifest.dialect)
    reasons: list[Invalid] = []
    for dialect in (None, *_UPSTREAM_IDS):
        try:
            _try_plan(scaffold.manifest, dialect)
        except Invalid as error:
            reasons.append(error)
        else:
            return Subject(scaffold, driver, dialect)
    raise reasons[0]


def planned_argv(subject: Subject, case: Case) -> Sequence[str]:
    """Return the command as it is planned; empty where the driver is no program."""
    return _try_plan(subject.scaffold.manifest, case.dialect or subject.dialect, case)


async def make_task(tx: Tx, project_id: str, case: Case) -> str:
    """Return the id of the case's task, made if need be. The input is stored already."""
    digest = hashlib.sha256(INPUT).hexdigest()
    if digest not in await blob_refs.project_has(tx, project_id, [digest]):
        await blob_refs.add_refs(tx, project_id, "conformance", project_id, [(digest, len(INPUT))])
    return (await tasks.create(tx, project_id, task(case.wall_s, case.instruction)))[0].id


async def make_agent(tx: Tx, project_id: str, subject: Subject, case: Case, base_url: str, key: str) -> str:
    """Return the id of the case's agent; its model answers at ``base_url`` from now on, with the credential ``key``.

    Raises Unavailable (no gateway has ever started), Conflict.
    """
    dialect = case.dialect or subject.dialect
    name = None if dialect is None else await _make_model(tx, project_id, dialect, case, base_url, key)
    row, _ = await agents.create(tx, project_id, AgentSpec(scaffold=subject.reference, model=name))
    return row.id


async def _make_model(tx: Tx, project_id: str, dialect: Dialect, case: Case, base_url: str, key: str) -> str:
    spec = _spec(dialect, case.name, base_url, screen=case.screen is not False)
    found = await models.find(tx, project_id, spec.name)
    if found is None:
        found, _ = await models.create(tx, project_id, spec, private=True)
    elif found.spec != spec:
        found = await models.replace(tx, project_id, found.id, spec, private=True)
    if found is None:
        raise Conflict("model_gone", f"{spec.name} was deleted meanwhile")
    if await credentials.put(tx, "model", project_id, found.id, Purpose.MODEL, key) is None:
        raise NotFound("model_not_found", f"{spec.name} was deleted meanwhile")
    return spec.name


def _spec(dialect: Dialect, case: str, base_url: str, *, screen: bool) -> ModelSpec:
    return ModelSpec(
        # A model of its own for each case: a breaker that one opens, and its key, are no other's.
        name=f"conformance/{dialect.value}/{case}",
        provider="scripted",
        upstream_id=(_SCREEN_IDS if screen else _UPSTREAM_IDS).get(dialect, "scripted"),
        dialect=dialect,
        base_url=f"{base_url}/v1" if dialect is Dialect.OPENAI else base_url,
        context_window=200_000,
        max_output_tokens=32_000,
        modalities=["text", "image"],
    )


def _try_plan(manifest: ScaffoldManifest, dialect: Dialect | None, case: Case | None = None) -> Sequence[str]:
    spec = None if dialect is None else _spec(dialect, "success", "http://127.0.0.1", screen=drives_screen(manifest))
    agent = AgentSpec(scaffold=f"{manifest.name}@{manifest.version}", model=None if spec is None else spec.name)
    given = [] if spec is None else [GrantedModel(id="", spec=spec)]
    made = task(600) if case is None else task(case.wall_s, case.instruction)
    seconds = made.limits.wall_clock_s
    context = plan_context(agent, given, sample=1, seconds=seconds, deadline_unix=0, manifest=manifest)
    return scaffold_for(manifest.kind).plan(made, agent, manifest, context).argv
