"""What a preflight tries out: each thing that agents share once, with the agents that hang on it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest, Surface
from service.domain.models import ModelSpec
from service.scaffolds.efforts import DEFAULT, MOST
from service.scaffolds.registry import scaffold_for, surface_for

MOST_TRIALS = 24
"""Runs of one preflight. Each scaffold comes in with the commonest environment before any does with a second one."""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent of the evaluation."""

    id: str
    label: str
    spec: AgentSpec
    scaffold_id: str
    manifest: ScaffoldManifest

    @property
    def surface(self) -> Surface:
        return surface_for(self.manifest, AgentSettings.of(self.spec.settings))

    @property
    def driver(self) -> Driver:
        return scaffold_for(self.manifest.kind).driver


@dataclass(frozen=True, slots=True, order=True)
class Ask:
    """A model asked at an effort; empty: with none sent."""

    model: str
    effort: str = ""

    def __str__(self) -> str:
        return f"{self.model}@{self.effort}" if self.effort else self.model


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of the built-in task: the scaffold and its kit, in an environment, on a surface."""

    scaffold: str
    environment: str
    surface: Surface
    agents: tuple[str, ...]
    """Ids; any of them can make the run."""

    def __str__(self) -> str:
        return f"{self.scaffold} in {self.environment}"


def asks_of(members: Sequence[Member], models: Mapping[str, ModelSpec]) -> dict[Ask, list[str]]:
    """Return what each agent hangs on. ``models``: of the catalogue, by name; what is not in it is asked without effort."""
    found: dict[Ask, list[str]] = {}
    for member in members:
        settings = AgentSettings.of(member.spec.settings)
        for name in dict.fromkeys(member.spec.models()):
            own = name == member.spec.model
            ask = Ask(name, _effort(settings.effort, models.get(name)) if own else "")
            found.setdefault(ask, []).append(member.id)
    return found


def trials_of(members: Sequence[Member], environments: Sequence[str], most: int = MOST_TRIALS) -> list[Trial]:
    """Return the runs, at most ``most``. ``environments``: of the tasks, the commonest first.

    Agents that nothing of ours drives (remote ones, people, uploads) have none.
    """
    driven = [m for m in members if m.driver in {Driver.KIT, Driver.LOOP}]
    groups: dict[tuple[str, str, Surface], list[str]] = {}
    names: dict[str, str] = {}
    for environment in environments:
        for member in driven:
            groups.setdefault((member.scaffold_id, environment, member.surface), []).append(member.id)
            names[member.scaffold_id] = f"{member.manifest.name}@{member.manifest.version}"
    made = [Trial(names[s], environment, surface, tuple(ids)) for (s, environment, surface), ids in groups.items()]
    return made[:most]


def count_trials(members: Sequence[Member], environments: Sequence[str]) -> int:
    """Return how many there would be without a limit."""
    return len(trials_of(members, environments, most=len(members) * max(1, len(environments))))


def _effort(asked: str, model: ModelSpec | None) -> str:
    if asked == DEFAULT or model is None:
        return ""
    if asked == MOST and MOST not in model.efforts:
        return model.efforts[-1] if model.efforts else ""
    return asked
