"""``matrix_view``: the matrix of an evaluation of 10 000 runs, and what its gates cost a claim."""

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from service.api.matrix_view import matrix_body
from service.domain.agents import AgentSpec
from service.domain.run_states import Phase
from service.domain.tasks import TaskManifest
from service.store import agents, attempts, migrate, run_batches, tasks
from service.store.database import Database, Tx
from service.store.evaluations import evaluations, matrix, members
from service.supervisor.postgres import EmbeddedPostgres
from tests.bench.report import Result
from tests.fixtures.postgres import open_directory
from tests.integration.store.evaluation_seeds import add_members, new_evaluation
from tests.integration.store.seeds import Seeds, add_host, seed

AGENTS, TASKS, SAMPLES = 36, 139, 2
ROUNDS = 20
CONNECTIONS = 12
# Half of them are done: two thirds of these graded.
_DONE = text("""
    UPDATE runs SET phase = 'done', outcome = CASE WHEN sample = 1 THEN 'graded' ELSE 'ungraded' END,
        score = 0.5, max_score = 1, ended_because = 'completed', wall_s = 100, graded_at = clock_timestamp(),
        cost_usd_all_attempts = 0.1, revision = revision + 1
    WHERE evaluation_id = :id AND mod(hashtext(id), 2) = 0""")


@dataclass(frozen=True)
class Scene:
    db: Database
    seeds: Seeds
    evaluation_id: str


def matrix_view() -> Result:
    """Milliseconds from the first statement to the body's bytes, median."""
    detail = with_runs(_watch)
    return Result("matrix_view", detail["matrix_ms"], "ms", goal="≤ 50 ms", detail=detail)


def with_runs(measure: Callable[[Scene], Coroutine[Any, Any, dict[str, Any]]]) -> dict[str, Any]:
    async def run(url: str) -> dict[str, Any]:
        async with _scene(url) as scene:
            return await measure(scene)

    with open_directory() as directory, EmbeddedPostgres(directory, durable=True) as server:
        url = server.url_for("postgres")
        migrate.upgrade(url)
        return asyncio.run(run(url))


@asynccontextmanager
async def _scene(url: str) -> AsyncGenerator[Scene]:
    db = Database(url, pool_size=CONNECTIONS)
    try:
        async with db.transaction() as tx:
            seeds = await seed(tx, "bench")
            evaluation_id = await _fill(tx, seeds)
        async with db.statement() as tx:
            await tx.execute(text("ANALYZE"))
        yield Scene(db, seeds, evaluation_id)
    finally:
        await db.close()


async def _fill(tx: Tx, seeds: Seeds) -> str:
    project = seeds.project.id
    task_ids = [
        (await tasks.create(tx, project, TaskManifest(name=f"t/{n}", instruction="x")))[0].id for n in range(TASKS)
    ]
    specs = [AgentSpec(scaffold="cmd@1", label=f"agent {n}", settings={"n": n}) for n in range(AGENTS)]
    agent_ids = [(await agents.create(tx, project, spec))[0].id for spec in specs]
    evaluation_id = await new_evaluation(tx, seeds)
    await add_members(tx, evaluation_id, agent_ids, task_ids, SAMPLES)
    places = [(s, t, a) for s in range(1, SAMPLES + 1) for t in task_ids for a in agent_ids]
    news = [seeds.new_run(agent_id=a, task_id=t, sample=s, evaluation_id=evaluation_id) for s, t, a in places]
    await run_batches.insert_many(tx, news)
    await members.count_inserted(tx, evaluation_id, Phase.QUEUED, dict.fromkeys(agent_ids, TASKS * SAMPLES))
    return evaluation_id


async def _watch(scene: Scene) -> dict[str, Any]:
    async with scene.db.transaction() as tx:
        host = await add_host(tx, slots=1000)
        counted = await _timed(5, lambda: attempts.claim(tx, host, 1))
    async with scene.db.transaction() as tx:
        await evaluations.change(tx, scene.evaluation_id, concurrency={"total": 5000, "per_agent": 2000})
    async with scene.db.transaction() as tx:
        gated = await _timed(5, lambda: attempts.claim(tx, host, 1))
    async with scene.db.transaction() as tx:
        await tx.execute(_DONE, {"id": scene.evaluation_id})
    sizes: list[int] = []

    async def look() -> None:
        async with scene.db.snapshot() as tx:
            sizes.append(len(await _body(tx, scene)))

    took = await _timed(ROUNDS, look)
    return {
        "runs": AGENTS * TASKS * SAMPLES, "matrix_ms": 1000 * took, "bytes": sizes[-1],
        "claim_ms": 1000 * counted, "gated_claim_ms": 1000 * gated,
    }  # fmt: skip


async def _body(tx: Tx, scene: Scene) -> bytes:
    row = await evaluations.get(tx, scene.seeds.project.id, scene.evaluation_id)
    assert row is not None
    of, items = await members.agents_of(tx, row.id), await members.tasks_of(tx, row.id)
    rows, listed = await matrix.agent_rows(tx, row.id), await matrix.standing_out(tx, row.id, 600)
    return matrix_body(row, of, items, rows, listed, 600)


async def _timed(rounds: int, work: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
