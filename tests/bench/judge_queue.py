"""``judge_queue``: 100 gradings of 10 rubrics each, a judge that takes 50 ms, 20 calls at once, through the real gateway.

Judge, gateway and PostgreSQL are processes of their own; the grader is the bench's. Against the ideal: calls x latency /
calls at once. Beside it what the same SDK takes for as many calls straight to the judge, and the CPU time of a call.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.evidence import EvidenceDocument, EvidenceFile, Part
from service.domain.integrity import IntegrityReport
from service.domain.models import ModelSpec
from service.domain.run_states import Phase
from service.domain.tasks import FileRef, GraderSpec, TaskManifest
from service.gateway.place import OWN, TOKEN
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.judge_turns import Turns
from service.lifecycle.judging import Judging
from service.lifecycle.operations.contract import OwnWay
from service.lifecycle.own_side import reach_of
from service.lifecycle.vote_writer import VoteWriter
from service.models.clients import client_for
from service.models.messages import Ask, UserTurn
from service.store import artifacts, blob_refs, evidence, gradings, integrity, migrate, models, runs, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx
from service.store.evidence import Made
from service.supervisor.postgres import EmbeddedPostgres
from tests.bench.report import Result
from tests.fixtures.judge_server import JudgeServer
from tests.fixtures.postgres import open_directory
from tests.integration.store.seeds import add_run, seed

LATENCY_S, AT_ONCE, GRADINGS, RUBRICS = 0.05, 20, 100, 10
MODEL = "bench/judge"
REPORT = b"The total is 42.\n" * 200
DIGEST = "d" * 64


@dataclass(frozen=True)
class _Scene:
    db: Database
    blobs: BlobStore
    folder: Path
    gateway: int
    """Process id."""
    project_id: str
    ids: list[str]
    spec: ModelSpec


def judge_queue(gradings_: int = GRADINGS, rubrics: int = RUBRICS, at_once: int = AT_ONCE) -> Result:
    with open_directory() as data, EmbeddedPostgres(data / "pg", durable=False) as server:
        migrate.upgrade(server.url)
        (data / "data").mkdir(mode=0o711)
        return asyncio.run(_bench(data / "data", server.url, gradings_, rubrics, at_once))


async def _bench(folder: Path, url: str, count: int, rubrics: int, at_once: int) -> Result:
    async with _scene(folder, url, count, rubrics) as scene:
        calls = count * rubrics
        direct = await _direct(scene, calls, at_once)
        ours, cpu, gateway_cpu = await _graded(scene, at_once)
        ideal = calls * LATENCY_S / at_once
        detail = {
            "calls": calls, "at_once": at_once, "latency_s": LATENCY_S, "direct_s": round(direct, 3),
            "cpu_ms_per_call": {"grader": 1000 * cpu / calls, "gateway": 1000 * gateway_cpu / calls},
        }  # fmt: skip
        return Result("judge_queue", ours, "s", ideal, ours / ideal, "<= 1.3", detail)


async def _graded(scene: _Scene, at_once: int) -> tuple[float, float, float]:
    """Return seconds, and CPU seconds of ourselves and of the gateway."""
    way = OwnWay(scene.folder / "gateway" / OWN, scene.folder / "gateway" / TOKEN)
    judging = Judging(scene.db, JudgeCalls(scene.db, way, Turns(at_once)), VoteWriter(scene.db, scene.blobs))
    ctx = GradeContext(scene.db, scene.blobs, judging=judging)
    await grade(ctx, scene.ids[0])  # what is imported and found out once per process
    places, began = asyncio.Semaphore(64), time.perf_counter()
    cpu, gateway_cpu = time.process_time(), _cpu_of(scene.gateway)

    async def one(grading_id: str) -> None:
        async with places:
            await grade(ctx, grading_id)

    await asyncio.gather(*(one(grading_id) for grading_id in scene.ids[1:]))
    took = time.perf_counter() - began
    used = time.process_time() - cpu, _cpu_of(scene.gateway) - gateway_cpu
    await judging.close()
    for grading_id in scene.ids:
        async with scene.db.reading() as tx:
            row = await gradings.get(tx, scene.project_id, grading_id)
        assert row is not None
        assert (row.state, row.score) == ("graded", row.max_score), row
    return took, *used


async def _direct(scene: _Scene, calls: int, at_once: int) -> float:
    """Return seconds for as many calls straight to the judge."""
    client = client_for(reach_of(str(scene.folder / "judge.sock"), scene.spec, "none"))
    system = '"nonce": "' + "0" * 32 + '" … 4 in all'
    left, began = iter(range(calls)), time.perf_counter()

    async def one_after_the_other() -> None:
        for _ in left:
            await client.ask(Ask(system, [UserTurn(text=REPORT.decode())], temperature=0.0))

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    took = time.perf_counter() - began
    await client.close()
    return took


@asynccontextmanager
async def _scene(folder: Path, url: str, count: int, rubrics: int) -> AsyncGenerator[_Scene]:
    db, blobs = Database(url), BlobStore(folder / "blobs")
    env = {**os.environ, "WORKSTEAD_DATA_DIR": str(folder), "WORKSTEAD_DATABASE_URL": url}
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.fixtures.judge_server", str(LATENCY_S), str(folder / "judge.sock"))
    judge = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    gateway = await asyncio.create_subprocess_exec(sys.executable, "-m", "service", "gateway", env=env)
    try:
        assert judge.stdout is not None
        server = JudgeServer()
        server.port = int(await judge.stdout.readline())
        spec = ModelSpec.model_validate(server.model(MODEL))
        await _listening(folder / "gateway" / OWN)
        project_id, ids = await _gradings(db, blobs, spec, count, rubrics)
        yield _Scene(db, blobs, folder, gateway.pid, project_id, ids, spec)
    finally:
        assert judge.stdin is not None
        judge.stdin.close()
        gateway.terminate()
        await asyncio.gather(judge.wait(), gateway.wait())
        await db.close()


async def _listening(path: Path) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_unix_connection(path)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


async def _gradings(db: Database, blobs: BlobStore, spec: ModelSpec, count: int, rubrics: int) -> tuple[str, list[str]]:
    """Return runs that delivered the same report, each with a grading, evidence and integrity report being there."""
    rubric = {"weight": 1, "rubric": "The total.", "criterion": [f"Criterion {n} holds." for n in range(4)]}
    hidden, size = blobs.store_bytes(json.dumps({"rubrics": [rubric] * rubrics}).encode())
    graders = [GraderSpec(method="rubric_chain", settings={"judges": [{"model": MODEL}]})]
    file = FileRef(path="RUBRICS.json", sha256=hidden, size_bytes=size)
    ids: list[str] = []
    async with db.transaction() as tx:
        seeds = await seed(tx, "bench")
        await models.create(tx, seeds.project.id, spec, private=True)
        await blob_refs.add_refs(tx, seeds.project.id, "upload", hidden, [(hidden, size)])
        manifest = TaskManifest(name="t/judged", instruction="Do it.", hidden=[file], graders=graders)
        task, _ = await tasks.create(tx, seeds.project.id, manifest)
        for _ in range(count):
            run = await add_run(tx, seeds, task_id=task.id)
            await artifacts.insert_all(tx, run.id, Deliverable((_entry(blobs),)))
            await runs.update(tx, run.id, deliverable_digest=DIGEST)
            await runs.set_phase(tx, run.id, Phase.GRADING)
            rows = await gradings.enqueue(tx, await runs.load(tx, run.id), graders, queues={"rubric_chain": "judges"})
            ids += [row.id for row in rows]
        await _known(tx, blobs, seeds.project.id)
    return seeds.project.id, ids


def _entry(blobs: BlobStore) -> ArtifactEntry:
    sha, size = blobs.store_bytes(REPORT)
    return ArtifactEntry("output/report.txt", EntryKind.FILE, size, sha)


async def _known(tx: Tx, blobs: BlobStore, project_id: str) -> None:
    part, entry = Part(kind="text", text=REPORT.decode()), _entry(blobs)
    assert entry.sha256 is not None
    file = EvidenceFile(
        path=entry.path, sha256=entry.sha256, size_bytes=len(REPORT), kind="text", state="extracted", parts=(part,)
    )
    sha, size = blobs.store_bytes(EvidenceDocument(files=(file,)).model_dump_json().encode())
    row = await evidence.request(tx, project_id, DIGEST, queued=False)
    await evidence.finish(tx, row.id, Made(sha, size, 1, 0, 0, 0.1, {}))
    report = await integrity.request(tx, project_id, DIGEST, queued=False)
    await integrity.finish(tx, report.id, IntegrityReport())


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
