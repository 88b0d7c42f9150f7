"""Embeddings of a benchmark's texts through the gateway: each once, in the ledger, whatever dies in between."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from service.domain.benchmarks import BenchmarkHead, BenchmarkItem, Source
from service.domain.embeddings import BATCH, OPERATION
from service.domain.models import Dialect
from service.domain.operations import OperationState
from service.domain.tasks import TaskManifest
from service.gateway.control import bind
from service.gateway.front import Front, NoServices
from service.gateway.http_server import HttpServing
from service.gateway.sides import OwnSide
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.operations.contract import OperationContext, OwnWay
from service.lifecycle.operations.perform import perform
from service.store import benchmarks, embeddings, models, operations, tasks
from service.store.rows import OperationRow
from service.store.tables_embeddings import embeddings as table
from service.store.tables_models import model_requests
from tests.fixtures.judge_server import JudgeServer
from tests.integration.gateway.bench import GateBench
from tests.integration.lifecycle.test_takeover import DieAt, Died

pytestmark = pytest.mark.asyncio(loop_scope="module")
MODEL = "test/openai"
TASKS = BATCH + 4


@asynccontextmanager
async def gateway(bench: GateBench, folder: Path, **changes: Any) -> AsyncGenerator[OwnWay]:
    """The gateway's own side on a Unix socket, with a model that speaks OpenAI's API unless told otherwise."""
    model = bench.model(Dialect.OPENAI, name=MODEL, **changes)

    async def find(project_id: str, names: list[str]) -> Any:
        return [model] if names == [MODEL] else []

    (folder / "token").write_text("service-token\n")
    front = Front(bench.forwarding, NoServices(), OwnSide(bench.endpoints, "service-token", find, 0.3).admit)
    listening = await HttpServing(16).start(front, bind(folder / "own.sock"))
    yield OwnWay(folder / "own.sock", folder / "token")
    await listening.close()


async def benchmark(bench: GateBench, n: int = TASKS) -> tuple[str, str]:
    """Return a project and its benchmark of ``n`` tasks; its catalogue has the model."""
    project = (await bench.grant()).project_id
    manifests = [TaskManifest(name=f"t/{k}", instruction=f"Write page {k}. {uuid4()}") for k in range(n)]
    async with bench.db.transaction() as tx:
        made = [(BenchmarkItem(key=f"i{k}", task=one), (await tasks.create(tx, project, one))[0].id) for k, one in enumerate(manifests)]  # fmt: skip
        head = BenchmarkHead(name=f"b-{uuid4()}", version="1", source=Source(importer="rows", importer_version="1"))
        row, _ = await benchmarks.insert_whole(tx, project, head, str(uuid4()), {}, made)
        await models.create(tx, project, bench.model(Dialect.OPENAI, name=MODEL).spec, private=True)
    return project, row.id


async def begun(bench: GateBench, project: str, benchmark_id: str, model: str = MODEL, dimensions: int = 4) -> str:
    spec = {"benchmark_id": benchmark_id, "model": model, "dimensions": dimensions}
    async with bench.db.transaction() as tx:
        return (await operations.create(tx, project, OPERATION, spec, unit="tasks")).id


async def performed(
    bench: GateBench, project: str, operation_id: str, way: OwnWay | None, crash: CrashPoints | None = None
) -> OperationRow:
    ctx = OperationContext(
        bench.db, bench.blobs, crash=crash or CrashPoints(), tries=2, first_pause_s=0.01, gateway=way
    )
    await perform(ctx, operation_id)
    async with bench.db.reading() as tx:
        found = await operations.get(tx, project, operation_id)
    assert found is not None
    return found


async def vectors(bench: GateBench, operation_id: str) -> dict[str, list[float]]:
    query = select(table.c.task_id, table.c.vector).where(table.c.operation_id == operation_id)
    async with bench.db.reading() as tx:
        return {row.task_id: row.vector for row in await tx.execute(query)}


async def test_every_text_once_in_batches_and_in_the_ledger(bench: GateBench, tmp_path: Path) -> None:
    project, benchmark_id = await benchmark(bench)
    async with gateway(bench, tmp_path) as way:
        operation_id = await begun(bench, project, benchmark_id)
        done = await performed(bench, project, operation_id, way)
        assert (done.state, done.problem) == (OperationState.SUCCEEDED, None)
        assert done.result == {
            "benchmark_id": benchmark_id, "model": MODEL, "dimensions": 4, "made": TASKS, "tasks": TASKS,
        }  # fmt: skip
        assert (done.done, done.total) == (TASKS, TASKS)
        assert [one.path for one in bench.asked()] == ["/v1/embeddings"] * 2
        made = await vectors(bench, operation_id)
        assert len(made) == TASKS
        assert len({tuple(one) for one in made.values()}) == TASKS
        assert {len(one) for one in made.values()} == {4}
        await bench.ledger.flush()
        async with bench.db.reading() as tx:
            c = model_requests.c
            asked = (await tx.execute(select(c.purpose, c.cost_usd).where(c.subject == operation_id))).all()
            (kind,) = await embeddings.kinds(tx, project, benchmark_id)
        assert [row.purpose for row in asked] == ["judge", "judge"]
        assert all(row.cost_usd > 0 for row in asked)
        assert (kind.model, kind.asked_dimensions, kind.length, kind.tasks) == (MODEL, 4, 4, TASKS)
        again = await performed(bench, project, await begun(bench, project, benchmark_id), way)
        assert again.result is not None
        assert (again.result["made"], len(bench.asked())) == (0, 2)
        other = await performed(bench, project, await begun(bench, project, benchmark_id, dimensions=8), way)
        assert other.result is not None
        assert other.result["made"] == TASKS  # another length is another kind


@pytest.mark.fault(111)
async def test_killed_after_a_batch_it_goes_on_with_the_rest(bench: GateBench, tmp_path: Path) -> None:
    project, benchmark_id = await benchmark(bench)
    async with gateway(bench, tmp_path) as way:
        operation_id = await begun(bench, project, benchmark_id)
        with pytest.raises(Died):
            await performed(bench, project, operation_id, way, DieAt(point="embeddings.recorded"))
        first = await vectors(bench, operation_id)
        assert (len(first), len(bench.asked())) == (BATCH, 1)
        done = await performed(bench, project, operation_id, way)
        assert (done.state, done.done) == (OperationState.SUCCEEDED, TASKS)
        whole = await vectors(bench, operation_id)
        assert len(whole) == TASKS
        assert first.items() <= whole.items()
        assert len(bench.asked()) == 2


@pytest.mark.parametrize(
    ("status", "type"), [(400, "embeddings_refused"), (503, "provider_unavailable"), (None, "bad_embeddings")]
)
async def test_what_is_no_vector_is_recorded_by_nobody(
    bench: GateBench, tmp_path: Path, status: int | None, type: str
) -> None:
    project, benchmark_id = await benchmark(bench, 1)
    with JudgeServer(lambda _: "no vectors") as server:
        server.fail = status
        async with gateway(bench, tmp_path, base_url=f"{server.url}/v1") as way:
            operation_id = await begun(bench, project, benchmark_id)
            done = await performed(bench, project, operation_id, way)
    assert done.problem is not None
    assert (done.state, done.problem["type"]) == (OperationState.FAILED, type)
    assert done.problem["detail"]
    assert await vectors(bench, operation_id) == {}


async def test_what_cannot_make_vectors_is_asked_for_none(bench: GateBench, tmp_path: Path) -> None:
    project, benchmark_id = await benchmark(bench, 1)
    async with bench.db.transaction() as tx:
        await models.create(tx, project, bench.model(Dialect.ANTHROPIC, name="test/talks").spec, private=True)
    async with gateway(bench, tmp_path) as way:
        for model, type in (("no/such", "model_not_found"), ("test/talks", "model_has_no_embeddings")):
            done = await performed(bench, project, await begun(bench, project, benchmark_id, model), way)
            assert done.problem is not None
            assert (done.state, done.problem["type"]) == (OperationState.FAILED, type)
    assert bench.asked() == []


async def test_without_a_gateway_or_a_benchmark_nothing_is_asked(bench: GateBench, tmp_path: Path) -> None:
    project, benchmark_id = await benchmark(bench, 1)
    alone = await performed(bench, project, await begun(bench, project, benchmark_id), None)
    assert alone.problem is not None
    assert alone.problem["type"] == "gateway_unavailable"
    away = OwnWay(tmp_path / "nobody.sock", tmp_path / "token")
    (tmp_path / "token").write_text("x")
    unheard = await performed(bench, project, await begun(bench, project, benchmark_id), away)
    assert unheard.problem is not None
    assert unheard.problem["type"] == "gateway_unavailable"
    async with gateway(bench, tmp_path) as way:
        gone = await performed(bench, project, await begun(bench, project, "bench_none"), way)
    assert gone.problem is not None
    assert gone.problem["type"] == "benchmark_not_found"
    assert bench.asked() == []
