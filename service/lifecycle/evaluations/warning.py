"""What somebody should know before an evaluation starts, and what does not stop it (NEEDS B2)."""

from collections.abc import Collection, Sequence

from service.domain.agents import AgentSettings
from service.domain.benchmarks import ItemStatus
from service.domain.evaluation_plans import Item
from service.domain.run_states import Flag
from service.lifecycle.evaluations.fitting import Member, Templates
from service.lifecycle.evaluations.problems import Problems
from service.models.pricing import upper_bound
from service.store import hosts, images, run_models
from service.store.database import Tx
from service.store.rows import NewRun

_NAMED = 5


async def look_around(
    tx: Tx, project_id: str, members: Sequence[Member], templates: Templates, chosen: Sequence[Item], problems: Problems
) -> None:
    """Warn of images that no host has, models that could not be asked or have no price, changed policies, doubtful tasks."""
    await _images(tx, templates.values(), problems)
    for member in members:
        _models(member, problems)
        await _services(tx, project_id, member, problems)
    _policies(members, templates, problems)
    _tasks(chosen, problems)


async def _images(tx: Tx, runs: Collection[NewRun], problems: Problems) -> None:
    up = [host for host in await hosts.list(tx) if host.state == "up"]
    if not up:
        problems.warn("no_host", "no host is up")
        return
    offered = {name for host in up for name in host.environments}
    wanted = {name for run in runs for name in (run.environment, run.kit) if name is not None}
    for name in sorted(wanted - offered):
        row = await images.load(tx, name)
        called = name if row is None else row.name
        problems.warn("image_missing", f"no host that is up has the image {called!r} yet", image=name)


def _models(member: Member, problems: Problems) -> None:
    for model in member.doer.models:
        name = model.spec.name
        if model.credential_id is None:
            problems.warn("model_without_credential", f"{name} has no credential", agent=member.label, model=name)
        if upper_bound(model.spec, 1_000, 1_000) is None:
            problems.warn("unknown_price", f"what {name} costs is not known", agent=member.label, model=name)


async def _services(tx: Tx, project_id: str, member: Member, problems: Problems) -> None:
    names = AgentSettings.of(member.doer.agent.spec.settings).services
    found = {one.name for one in await run_models.granted_services(tx, project_id, names)} if names else set[str]()
    for name in sorted(set(names) - found):
        problems.warn("service_missing", f"the project has no service {name!r}", agent=member.label, service=name)


def _policies(members: Sequence[Member], templates: Templates, problems: Problems) -> None:
    for member in members:
        changed = sum(
            Flag.POLICY_CHANGED in run.flags for (agent_id, _), run in templates.items() if agent_id == member.id
        )
        if changed:
            detail = f"{changed} tasks run with another network policy than their own, and are flagged"
            problems.warn("policy_changed", detail, agent=member.label, tasks=changed)


def _tasks(chosen: Sequence[Item], problems: Problems) -> None:
    groups = {
        "disputed_tasks": [i.key for i in chosen if i.status is ItemStatus.DISPUTED],
        "quarantined_tasks": [i.key for i in chosen if i.status is ItemStatus.QUARANTINED],
        "suspect_tasks": [i.key for i in chosen if i.check == "suspect"],
        "broken_tasks": [i.key for i in chosen if i.check == "broken"],
    }
    for type_, keys in groups.items():
        if keys:
            shown = ", ".join(keys[:_NAMED]) + (" …" if len(keys) > _NAMED else "")
            problems.warn(type_, f"{len(keys)} of the chosen tasks: {shown}", tasks=len(keys))
