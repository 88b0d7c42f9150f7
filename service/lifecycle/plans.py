"""Grading plans are checked where they come in, and against each task that they are to grade."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.domain.errors import Invalid
from service.domain.grading_plans import PlanGrader, PlanSpec, specs_for
from service.domain.judging import JudgeSpec
from service.domain.models import Dialect
from service.domain.tasks import TaskManifest
from service.graders.registry import METHODS, check, grader_for
from service.store import grading_plans, models
from service.store.database import Tx
from service.store.rows_grading import PlanRow

JUDGES = "judges"
"""Member of a method's settings that says who is asked."""
_JUDGES = TypeAdapter(list[JudgeSpec])


async def make_plan(tx: Tx, project_id: str, name: str, spec: PlanSpec, author: str) -> tuple[PlanRow, bool]:
    """Check and store a plan's next version; see :func:`grading_plans.put`.

    Raises Invalid ``unknown_grading_method``, ``plan_without_verdict``, ``bad_judges``, ``unknown_judge``,
    ``plan_built_in``.
    """
    for grader in spec.graders:
        _check_method(grader)
    if spec.graders and not any(grader.primary for grader in spec.graders):
        raise Invalid("plan_without_verdict", "none of the plan's methods is primary, so no run could get a verdict")
    await check_judges(tx, project_id, (grader.settings for grader in spec.graders))
    return await grading_plans.put(tx, project_id, name, spec, author)


async def grading_plan(tx: Tx, project_id: str, reference: str, task: TaskManifest) -> str:
    """Return ``name@version`` of a plan that can grade the task. The tasks' own graders were checked with the tasks.

    Raises NotFound ``plan_not_found``, Invalid (plan and task do not fit).
    """
    name, spec = await grading_plans.resolve(tx, project_id, reference)
    if spec.graders:
        check_tasks(spec, [task])
        await check_judges(tx, project_id, (found.settings for found, _ in specs_for(spec, task.graders)))
    return name


async def check_judges(tx: Tx, project_id: str, settings: Iterable[Mapping[str, Any]]) -> None:
    """Refuse judges whose model is not in the project's catalogue, or has no answers that could be read as text.

    Raises Invalid ``bad_judges``, ``unknown_judge``.
    """
    for judge in {judge.model: judge for some in settings for judge in judges_of(some)}.values():
        row = await models.find(tx, project_id, judge.model)
        if row is None:
            raise Invalid("unknown_judge", f"the catalogue has no model {judge.model!r}", model=judge.model)
        if row.spec.dialect is Dialect.OPAQUE:
            raise Invalid("unknown_judge", f"{judge.model!r} speaks a protocol of its own", model=judge.model)


def judges_of(settings: Mapping[str, Any]) -> list[JudgeSpec]:
    """Return the judges that a method's settings name. Raises Invalid ``bad_judges``."""
    try:
        return _JUDGES.validate_python(settings.get(JUDGES) or [])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (JUDGES, *first["loc"])))
        raise Invalid("bad_judges", f"{where}: {first['msg']}") from error


def check_tasks(plan: PlanSpec, tasks: Iterable[TaskManifest]) -> None:
    """Refuse tasks that the plan could never grade, with the task's name in the problem.

    Raises Invalid of the method's own types, ``judges_missing``, ``no_graders``.
    """
    for task in tasks:
        try:
            _check_task(plan, task)
        except Invalid as error:
            raise Invalid(
                error.type, f"task {task.name}: {error.detail}", **{**error.fields, "task": task.name}
            ) from error


def _check_task(plan: PlanSpec, task: TaskManifest) -> None:
    specs = specs_for(plan, task.graders)
    if not any(counts for _, counts in specs):
        raise Invalid("no_graders", "under this plan nothing decides on it")
    for spec, _ in specs:
        check(spec, task)
        grader = grader_for(spec.method)
        if plan.graders and grader is not None and grader.queue == "judges" and not judges_of(spec.settings):
            raise Invalid("judges_missing", f"neither plan nor task names a judge for {spec.method}")


def _check_method(grader: PlanGrader) -> None:
    if grader_for(grader.method) is None:
        detail = f"no grading method is called {grader.method!r}"
        raise Invalid("unknown_grading_method", detail, methods=sorted(METHODS))
