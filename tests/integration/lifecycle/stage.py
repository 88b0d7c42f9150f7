"""What a lifecycle test needs: a project with a task and agents, and a worker's context that can be thrown away."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.events import Event
from service.domain.run_states import Phase, StopMode
from service.domain.tasks import FileRef, TaskManifest
from service.lifecycle import STEPS
from service.lifecycle.context import Context, Timing
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.ports import Sandboxes
from service.lifecycle.queue import claim
from service.lifecycle.stop import stop
from service.lifecycle.submit import RunRequest, submit
from service.store import agents, attempts, blob_refs, events, grading_jobs, hosts, projects, runs, scaffolds, tasks
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.events import EventLog
from service.store.notifications import Notifications
from service.store.rows import AttemptRow, HostRow, Project, RunRow
from service.testing.memory_sandbox import MemoryBackend, MemoryHost

TIMING = Timing(flush_s=0.002, sample_s=0.2, disk_scan_s=0.05, inspect_s=0.1, launcher_patience_s=0.3, drain_s=0.5,
                retry_s=0.01)  # fmt: skip
RIGHT = {"total": 42, "name": "Zürich"}
ANSWERS = [{"id": "total", "type": "int"}, {"id": "name", "type": "string"}]
WRITE_RIGHT = f"import json; json.dump({RIGHT!r}, open('output/answers.json', 'w'))"


async def until(check: Callable[[], Awaitable[bool]], timeout_s: float = 30) -> None:
    """Wait for something that only a look can tell."""
    async with asyncio.timeout(timeout_s):
        while not await check():  # noqa: ASYNC110 - the state is in a database
            await asyncio.sleep(0.005)


@dataclass(slots=True)
class Stage:
    db: Database
    notifications: Notifications
    blobs: BlobStore
    machine: MemoryHost
    spool_dir: Path
    project: Project
    host: HostRow
    contexts: list[Context] = field(default_factory=list[Context])

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, folder: Path, machine: MemoryHost) -> AsyncGenerator["Stage"]:
        db = Database(url)
        async with Notifications(url) as notifications:
            async with db.transaction() as tx:
                project = await projects.get_default(tx)
                host = HostRow("host-1", "epoch-1", 4, ("runc",), ("base", "workbench"))
                await hosts.register(tx, host)
            yield cls(db, notifications, BlobStore(folder / "blobs"), machine, folder / "spool", project, host)
        await db.close()

    def context(self, **changes: Any) -> Context:
        """A worker's context: each is a process of its own, as far as the sandboxes can tell."""
        backend = MemoryBackend(self.machine)
        ctx = Context(
            self.db, self.notifications, EventLog(self.blobs), self.blobs, Sandboxes(backend), self.spool_dir,
            timing=TIMING,
        )  # fmt: skip
        ctx = replace(ctx, **changes)
        self.contexts.append(ctx)
        return ctx

    async def upload(self, path: str, data: bytes) -> FileRef:
        digest, size = self.blobs.store_bytes(data)
        async with self.db.transaction() as tx:
            await blob_refs.add_refs(tx, self.project.id, "upload", digest, [(digest, size)])
        return FileRef(path=path, sha256=digest, size_bytes=size)

    async def task(self, **fields: Any) -> str:
        """A task with one visible file, an answer, a solution, and the exact grader."""
        right = json.dumps(RIGHT).encode()
        manifest = TaskManifest.model_validate(
            {
                "name": "sum",
                "instruction": "Add up input.csv.",
                "visible": [await self.upload("input.csv", b"40\n2\n")],
                "hidden": [await self.upload("answers.json", right), await self.upload("solution/output/answers.json", right)],
                "graders": [{"method": "exact", "settings": {"expected": {"hidden": "answers.json"}, "answers": ANSWERS}}],
                **fields,
            }
        )  # fmt: skip
        async with self.db.transaction() as tx:
            return (await tasks.create(tx, self.project.id, manifest))[0].id

    async def agent(self, name: str = "python", code: str = WRITE_RIGHT, **fields: Any) -> str:
        body = {"argv": [sys.executable, "-c", code.replace("{", "{{").replace("}", "}}")], **fields}
        if body.get("kind", "command") != "command":
            body.pop("argv")
        manifest = ScaffoldManifest.model_validate({"name": name, "version": "1", **body})
        async with self.db.transaction() as tx:
            await scaffolds.register(tx, self.project.id, manifest)
            return (await agents.create(tx, self.project.id, AgentSpec(scaffold=f"{name}@1")))[0].id

    async def submit(self, task: str, agent: str, **fields: Any) -> RunRow:
        async with self.db.transaction() as tx:
            return await submit(tx, self.project, RunRequest(task=task, agent=agent, **fields))

    async def run(self, task: str, agent: str, **fields: Any) -> RunRow:
        """Submit, work it off, grade."""
        run = await self.submit(task, agent, **fields)
        await self.work(self.context(), run.id)
        await self.grade_all()
        return await self.row(run.id)

    async def claim(self, ctx: Context) -> AttemptRow:
        (attempt,) = await claim(ctx, self.host, 1)
        return attempt

    async def work(self, ctx: Context, run_id: str) -> None:
        """Claim and step until the run has no live attempt and is not queued."""
        while True:
            claimed = await claim(ctx, self.host, 1)
            if not claimed:
                return
            assert claimed[0].run_id == run_id
            await self.steps(ctx, claimed[0])

    async def steps(self, ctx: Context, attempt: AttemptRow, until: str | None = None) -> AttemptRow:
        while True:
            async with self.db.reading() as tx:
                now = await attempts.get(tx, attempt.run_id, attempt.n)
            assert now is not None
            step = STEPS[now.state]
            if step is None or now.state == until:
                return now
            async with asyncio.timeout(60):
                await step(ctx, now)

    async def stop(self, run_id: str, mode: StopMode) -> RunRow:
        async with self.db.transaction() as tx:
            return await stop(tx, self.project.id, run_id, mode)

    async def grade_all(self) -> None:
        async with self.db.reading() as tx:
            ids = await grading_jobs.open_ids(tx)
        for grading_id in ids:
            await grade(GradeContext(self.db, self.blobs, first_pause_s=0.01), grading_id)

    async def row(self, run_id: str) -> RunRow:
        async with self.db.reading() as tx:
            return await runs.load(tx, run_id)

    async def is_in(self, run_id: str, phase: Phase) -> bool:
        return (await self.row(run_id)).phase is phase

    async def has_event(self, run_id: str, type: str, count: int = 1) -> bool:
        return len(await self.events(run_id, type)) >= count

    async def attempts(self, run_id: str) -> list[AttemptRow]:
        async with self.db.reading() as tx:
            return await attempts.list_for_run(tx, run_id)

    async def events(self, run_id: str, *types: str) -> list[Event]:
        found: list[Event] = []
        async with self.db.reading() as tx:
            while page := await events.read(tx, run_id, found[-1].seq if found else 0, 2000):
                found += page
        assert [e.seq for e in found] == list(range(1, len(found) + 1))
        return [e for e in found if not types or e.type in types]

    async def output(self, run_id: str, stream: str = "stdout") -> str:
        return "".join(e.payload["text"] for e in await self.events(run_id, "output") if e.payload["stream"] == stream)
