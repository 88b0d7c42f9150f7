"""An evaluation that is under way, with as many agents and runs as a test wants."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from service.domain.agents import AgentSpec
from service.domain.evaluations import EvaluationSpec
from service.domain.ids import new_id
from service.domain.models import ModelSpec
from service.domain.run_states import Phase
from service.store import agents, models, runs
from service.store.database import Database, Tx
from service.store.evaluations import evaluations, members
from service.store.rows import RunRow
from service.store.tables import runs as table
from tests.integration.store.seeds import Seeds, add_run


@dataclass(frozen=True, slots=True)
class Scene:
    db: Database
    seeds: Seeds
    id: str
    agents: list[str]
    runs: list[str]

    async def phases(self) -> Counter[str]:
        async with self.db.reading() as tx:
            query = select(table.c.phase).where(table.c.evaluation_id == self.id)
            return Counter((await tx.execute(query)).scalars())

    async def run(self, index: int) -> RunRow:
        async with self.db.reading() as tx:
            return await runs.load(tx, self.runs[index])

    async def change(self, **columns: Any) -> None:
        async with self.db.transaction() as tx:
            await evaluations.change(tx, self.id, **columns)

    async def log(self) -> list[str]:
        async with self.db.reading() as tx:
            return [row.action for row in await evaluations.log(tx, self.id)]


def model(name: str, provider: str) -> ModelSpec:
    return ModelSpec.model_validate({
        "name": name, "provider": provider, "upstream_id": "one", "dialect": "openai", "base_url": "https://x.example.com/v1",
    })  # fmt: skip


async def scene(
    db: Database,
    seeds: Seeds,
    each: int = 3,
    *,
    with_models: tuple[str | None, ...] = (None,),
    run: Any = None,
    **columns: Any,
) -> Scene:
    """An agent per entry of ``with_models`` (``provider/name``) and ``each`` queued runs of it; breadth first."""
    async with db.transaction() as tx:
        ids = [await _agent(tx, seeds, i, name) for i, name in enumerate(with_models)]
        evaluation_id = await new_evaluation(tx, seeds, **columns)
        await add_members(tx, evaluation_id, ids, [seeds.task.id], each)
        made = [
            (await add_run(tx, seeds, agent_id=a, evaluation_id=evaluation_id, **(run or {}))).id
            for _ in range(each)
            for a in ids
        ]
        await members.count_inserted(tx, evaluation_id, Phase.QUEUED, dict.fromkeys(ids, each))
    return Scene(db, seeds, evaluation_id, ids, made)


async def _agent(tx: Tx, seeds: Seeds, index: int, name: str | None) -> str:
    if name is not None and await models.find(tx, seeds.project.id, name) is None:
        await models.create(tx, seeds.project.id, model(name, name.split("/")[0]), private=False)
    spec = AgentSpec(scaffold="cmd@1", model=name, label=f"agent {index} of {new_id('x')}", settings={"nth": index})
    row, _ = await agents.create(tx, seeds.project.id, spec)
    return row.id


async def add_members(
    tx: Tx, evaluation_id: str, agent_ids: Sequence[str], task_ids: Sequence[str], samples: int
) -> None:
    """Put agents and tasks in an evaluation, in this order."""
    await members.add_agents(tx, [
        {"evaluation_id": evaluation_id, "agent_id": a, "position": i, "samples": samples, "settings": {}}
        for i, a in enumerate(agent_ids)
    ])  # fmt: skip
    await members.add_tasks(tx, [
        {"evaluation_id": evaluation_id, "task_id": t, "position": i, "item_key": str(i), "status": "ok"}
        for i, t in enumerate(task_ids)
    ])  # fmt: skip


async def new_evaluation(tx: Tx, seeds: Seeds, **columns: Any) -> str:
    """Insert one that runs, without agents and tasks; return its id."""
    spec = EvaluationSpec.model_validate({"name": "eval", "task_ids": [seeds.task.id], "agents": [{"agent": "any"}]})
    values = {
        "id": new_id("eval"), "project_id": seeds.project.id, "name": "eval", "state": "running",
        "spec": spec.model_dump(mode="json"), "resolved": {}, "plan": "task@1", "author": "tok_1",
        **{name: getattr(spec, name).model_dump(mode="json") for name in ("budget", "stop_rules", "concurrency")},
    }  # fmt: skip
    return (await evaluations.create(tx, values | columns)).id
