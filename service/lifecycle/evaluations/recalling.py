"""A kept evaluation with everything that making runs of it takes, as its parts are now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from service.domain.cleaning import clean_json
from service.domain.errors import Conflict, Expected
from service.domain.evaluation_plans import laid_over
from service.domain.evaluations import RunSettings
from service.lifecycle.evaluations.estimating import Question, estimate
from service.lifecycle.evaluations.fitting import Member, Templates, Work, fit, work_of
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.image_choice import ChosenImages
from service.lifecycle.submit import doer_of
from service.store import grading_plans
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.rows_evaluations import EvaluationRow, MemberRow


@dataclass(frozen=True, slots=True)
class Recalled:
    members: Sequence[Member]
    task_ids: Sequence[str]
    work: Work
    templates: Templates


async def recall(tx: Tx, row: EvaluationRow, only: Collection[str] | None = None) -> Recalled:
    """Return the evaluation's agents (``only`` some, by id) and tasks, checked again: models and images may have changed.

    Raises Conflict ``evaluation_outdated`` with ``problems``.
    """
    rows = [one for one in await members.agents_of(tx, row.id) if only is None or one.agent_id in only]
    problems = Problems()
    found = [one for one in [await _member(tx, row, one, problems) for one in rows] if one is not None]
    task_ids = [one.task_id for one in await members.tasks_of(tx, row.id)]
    work = await work_of(tx, row.project_id, task_ids, row.plan)
    templates = await fit(ChosenImages(tx, row.project_id), work, found, problems)
    problems.refuse_outdated()
    return Recalled(found, task_ids, work, templates)


async def estimate_again(tx: Tx, blobs: BlobStore, row: EvaluationRow) -> EvaluationRow:
    """Estimate all runs of it by what is known now. Raises Conflict ``evaluation_outdated``."""
    found = await recall(tx, row)
    plan = await grading_plans.spec_of(tx, row.project_id, row.plan)
    benchmark = row.resolved["benchmark"]
    asked = Question(benchmark["name"] if benchmark else None, plan, found.work.manifests, row.concurrency)
    said = await estimate(tx, blobs, row.project_id, asked, found.members, found.templates)
    return await evaluations.change(tx, row.id, estimate=clean_json(said))


def own_settings(row: EvaluationRow) -> RunSettings:
    """Return the settings of all runs, with the priority that the evaluation has by now."""
    return row.spec.run.model_copy(update={"priority": row.priority})


async def _member(tx: Tx, row: EvaluationRow, one: MemberRow, problems: Problems) -> Member | None:
    try:
        doer = await doer_of(tx, row.project_id, one.agent_id)
    except Expected as error:
        problems.add(error, agent=one.agent_label)
        return None
    return Member(doer, one.samples, one.settings, laid_over(own_settings(row), one.settings))


def check_state(row: EvaluationRow, allowed: Collection[str]) -> None:
    """Raises Conflict ``evaluation_state``."""
    if row.state not in allowed:
        detail = f"the evaluation is {row.state}; this is for one that is {' or '.join(sorted(allowed))}"
        raise Conflict("evaluation_state", detail, state=str(row.state))
