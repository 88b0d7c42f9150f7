"""Every agent against every task, as ``submit`` does it, but once for each agent and shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from service.domain.errors import Conflict, Expected, Invalid, NotFound
from service.domain.evaluation_plans import Slot
from service.domain.evaluations import RunSettings
from service.domain.run_states import Flag
from service.domain.tasks import TaskManifest
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.evaluations.shapes import Shape, shapes_of
from service.lifecycle.image_choice import ChosenImages
from service.lifecycle.submit import Doer, RunRequest, planned
from service.store import tasks
from service.store.database import Tx
from service.store.evaluations import items
from service.store.rows import NewRun

_BY_SIZE = frozenset({"prompt_too_long", "argument_too_long"})
"""Refusals that a task with less text may escape."""
MOST_CHECKS = 50_000
"""Agents by shapes."""


@dataclass(frozen=True, slots=True)
class Work:
    """The tasks of an evaluation and how their runs are made."""

    manifests: Mapping[str, TaskManifest]
    shapes: Sequence[Shape]
    plan: str
    """``name@version``"""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent with the settings of its runs, the evaluation's among them."""

    doer: Doer
    samples: int
    own: RunSettings
    """What was said for it alone."""
    settings: RunSettings
    made: bool = False
    """For this evaluation: there was no agent of these parts before."""

    @property
    def id(self) -> str:
        return self.doer.agent.id

    @property
    def label(self) -> str:
        return self.doer.agent.label


Templates = Mapping[tuple[str, str], NewRun]
"""(agent, task) → its run, but for the sample."""


async def work_of(tx: Tx, project_id: str, task_ids: Sequence[str], plan: str) -> Work:
    """Read the tasks. The caller knows that they are the project's."""
    manifests = await tasks.manifests(tx, project_id, task_ids)
    denied = await items.deny_lists(tx, project_id, task_ids)
    return Work(manifests, shapes_of(manifests, denied), plan)


async def fit(images: ChosenImages, work: Work, members: Sequence[Member], problems: Problems) -> Templates:
    """Return how the runs are made; what cannot be is added to ``problems``. Raises Invalid ``too_varied``."""
    if len(members) * len(work.shapes) > MOST_CHECKS:
        detail = f"{len(members)} agents on {len(work.shapes)} different kinds of tasks; at most {MOST_CHECKS} together"
        raise Invalid("too_varied", detail)
    found: dict[tuple[str, str], NewRun] = {}
    for member in members:
        request = _request(member, work.plan, problems)
        for shape in work.shapes if request else ():
            assert request is not None
            template = await _fit_one(images, work, member, shape, request, problems)
            if template is not None:
                found |= {(member.id, one): replace(template, task_id=one) for one in shape.task_ids}
    return found


def run_of(
    templates: Templates, slot: Slot, evaluation_id: str, derived_from: str | None = None, recorded: str | None = None
) -> NewRun:
    """Return the run of a place. ``recorded``: the run whose recording answers it."""
    template = templates[slot.agent_id, slot.task_id]
    new = replace(template, sample=slot.sample, evaluation_id=evaluation_id, derived_from=derived_from or recorded)
    return new if recorded is None else replace(new, replay_of=recorded, flags=(*new.flags, Flag.REPLAYED))


def _request(member: Member, plan: str, problems: Problems) -> RunRequest | None:
    said = {name: value for name in RunSettings.model_fields if (value := getattr(member.settings, name)) is not None}
    try:
        return RunRequest(task="any", agent=member.id, plan=plan, **said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        problems.add(Invalid("bad_run_settings", f"run.{where}: {first['msg']}"), agent=member.label)
        return None


async def _fit_one(
    images: ChosenImages, work: Work, member: Member, shape: Shape, request: RunRequest, problems: Problems
) -> NewRun | None:
    async def ask(task_id: str) -> NewRun | Expected:
        try:
            return await planned(images, task_id, work.manifests[task_id], member.doer, request, shape.denied)
        except (Invalid, NotFound, Conflict) as error:
            return error

    asked = await ask(shape.longest)
    if not isinstance(asked, Expected):
        return asked
    if asked.type not in _BY_SIZE:
        name = work.manifests[shape.longest].name
        problems.add(asked, agent=member.label, task=name, tasks=len(shape.task_ids))
        return None
    for task_id in shape.task_ids:
        refused = await ask(task_id)
        if isinstance(refused, Expected):
            problems.add(refused, agent=member.label, task=work.manifests[task_id].name)
    return None
