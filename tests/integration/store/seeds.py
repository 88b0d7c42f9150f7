"""Rows that nearly every test of the store needs."""

from dataclasses import dataclass, replace
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.limits import Limits
from service.domain.tasks import TaskManifest
from service.store import agents, hosts, projects, runs, scaffolds, tasks
from service.store.database import Tx
from service.store.rows import AgentRow, HostRow, NewRun, Project, RunRow, TaskRow


@dataclass(frozen=True, slots=True)
class Seeds:
    project: Project
    task: TaskRow
    agent: AgentRow

    def new_run(self, **changes: Any) -> NewRun:
        new = NewRun(self.project.id, self.task.id, self.agent.id, Limits(), "base")
        return replace(new, **changes)


async def seed(tx: Tx, name: str, *, untrusted: bool = False) -> Seeds:
    project = await projects.create(tx, name, untrusted=untrusted)
    task, _ = await tasks.create(tx, project.id, TaskManifest(name="t/one", instruction="Do it."))
    await scaffolds.register(tx, project.id, ScaffoldManifest(name="cmd", version="1", argv=["true"]))
    agent, _ = await agents.create(tx, project.id, AgentSpec(scaffold="cmd@1"))
    return Seeds(project, task, agent)


async def add_run(tx: Tx, seeds: Seeds, **changes: Any) -> RunRow:
    return await runs.insert(tx, seeds.new_run(**changes))


async def add_host(tx: Tx, host_id: str = "h1", epoch: str = "e1", **changes: Any) -> HostRow:
    host = HostRow(id=host_id, epoch=epoch, slots=4, runtimes=("runc",), environments=("base",))
    return await hosts.register(tx, replace(host, **changes))
