"""Whether what the runs deliver could be graded, and whether simulated clients could answer: once for each task."""

from collections.abc import Mapping, Sequence

from service.domain.errors import Invalid
from service.domain.grading_plans import PlanSpec, specs_for
from service.domain.tasks import TaskManifest
from service.lifecycle.client_facts import client_model, find_facts
from service.lifecycle.evaluations.fitting import Member
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.plans import check_judges, check_tasks
from service.store import run_models
from service.store.database import Tx


async def check_grading(
    tx: Tx, project_id: str, plan: PlanSpec, manifests: Mapping[str, TaskManifest], problems: Problems
) -> None:
    """Add tasks that the plan could never grade, and judges that nobody could ask."""
    for manifest in manifests.values():
        try:
            if plan.graders:  # the tasks' own graders were checked with the tasks
                check_tasks(plan, [manifest])
        except Invalid as error:
            problems.add(error, task=manifest.name)
    without = [m.name for m in manifests.values() if not plan.graders and not m.graders]
    if without:
        problems.warn("no_graders", f"nothing grades {without[0]}", tasks=len(without))
    try:
        settings = (found.settings for m in manifests.values() for found, _ in specs_for(plan, m.graders))
        await check_judges(tx, project_id, settings)
    except Invalid as error:
        problems.add(error)


async def check_clients(
    tx: Tx, project_id: str, members: Sequence[Member], manifests: Mapping[str, TaskManifest], problems: Problems
) -> None:
    """Add tasks whose client knows nothing yet, and clients that no model plays."""
    players: set[str] = set()
    for task_id, manifest in manifests.items():
        talking = [one for one in members if manifest.client is not None and one.doer.talks(manifest)]
        for member in talking:
            try:
                players.add(client_model(manifest, member.doer.agent.spec.model))
            except Invalid as error:
                problems.add(error, agent=member.label, task=manifest.name)
        if talking and await find_facts(tx, task_id, project_id, manifest) is None:
            detail = f"its client knows nothing yet: POST /v1/tasks/{task_id}/client-facts makes it"
            problems.add(Invalid("client_facts_missing", detail), task=manifest.name)
    known = {one.spec.name for one in await run_models.granted_models(tx, project_id, sorted(players))}
    for name in sorted(players - known):
        problems.add(Invalid("model_not_found", f"the project's catalogue has no model {name!r} for a task's client"))
