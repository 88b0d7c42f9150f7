"""Shells by the command line, in real sandboxes: tried by hand, and kept after a failure."""

import asyncio
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from service.domain.run_states import EndedBecause, Flag, Outcome
from service.lifecycle.context import Context, Timing
from service.lifecycle.ports import Sandboxes
from service.sandboxes.docker.backend import DockerBackend
from service.store import runs
from service.store.run_filters import RunFilter
from service.testing.memory_sandbox import MemoryHost
from tests.api.helpers import served
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import RIGHT, Stage, until

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(300)]
FAILS = f"import json; json.dump({RIGHT!r}, open('output/answers.json', 'w')); raise SystemExit(3)"
LIMITS = {"memory_bytes": 256 << 20, "wall_clock_s": 120}
KEPT_S = 25.0


@dataclass(slots=True)
class DockerWorkers(Stage):
    """A stage whose workers have the real engine."""

    backends: list[DockerBackend] = field(default_factory=list[DockerBackend])

    def context(self, **changes: object) -> Context:
        backend = DockerBackend(self.spool_dir.parent / "data", "driving-test", runtimes=("runc",))
        self.backends.append(backend)
        return Stage.context(self, sandboxes=Sandboxes(backend), timing=Timing(), **changes)


@pytest.fixture
async def remote(database_url: str, tmp_path: Path) -> AsyncIterator[Remote]:
    machine = MemoryHost()
    async with DockerWorkers.open(database_url, tmp_path, machine) as stage, Remote.open(stage) as made:
        yield made
        await made.kill_worker()
        assert isinstance(stage, DockerWorkers)
        for backend in stage.backends:
            for sandbox_id in await backend.list_ids():
                await backend.remove(sandbox_id)
            await backend.close()
    machine.close()


async def command(remote: Remote, url: str, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Run ``workstead …`` with keys typed into it; return its exit code and what it showed."""
    env = {**os.environ, "WORKSTEAD_URL": url, "WORKSTEAD_TOKEN": remote.token}
    argv = [sys.executable, "-c", "from workstead.cli.app import main; main()", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, argv, env=env, input=typed, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip()


async def state_of(container: str) -> str:
    return await asyncio.to_thread(docker, "inspect", "--format", "{{.State.Status}}", container)


async def container_of() -> str:
    (found,) = (
        await asyncio.to_thread(docker, "ps", "-aq", "--filter", "label=org.workstead.deployment=driving-test")
    ).split()
    return found


async def test_a_failed_runs_sandbox_is_frozen_looked_into_and_gone_after_its_time(
    remote: Remote, tmp_path: Path
) -> None:
    stage = remote.stage
    code = FAILS.replace("{", "{{").replace("}", "}}")
    agent = await stage.agent("fails", argv=["python3", "-c", code])
    run = await stage.submit(await stage.task(), agent, keep_on_failure_s=KEPT_S, limits=LIMITS)
    await remote.start_worker(run.id)
    await until(lambda: stage.has_event(run.id, "note"), 90)
    container = await container_of()
    assert await state_of(container) == "paused"
    async with served(remote.app) as url:
        typed = "stty -echo; cat output/answers.json; echo; echo seen-$((6*7)); exit 7\n"
        exit_code, shown = await command(remote, url, "runs", "shell", run.id, typed=typed)
        assert exit_code == 7, shown
        assert "seen-42" in shown
        assert '"total": 42' in shown
        assert await state_of(container) == "paused", "frozen again when the shell has gone"
        row = await remote.end(run.id)
        assert await state_of(container) == "", "its time is over"
        assert (row.ended_because, row.outcome, row.score) == (EndedBecause.SCAFFOLD_ERROR, Outcome.GRADED, 2.0)
        assert Flag.ASSISTED in row.flags
        target = tmp_path / "run.zip"
        exit_code, shown = await command(remote, url, "runs", "bundle", run.id, "-o", str(target))
        assert exit_code == 0, shown
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        assert not archive.testzip()
        everything = b"".join(archive.read(name) for name in names)
    assert any("events" in name for name in names), names
    assert b"raise SystemExit(3)" in everything, "the command line"
    assert remote.token.encode() not in everything


async def test_try_gives_a_shell_in_the_scaffolds_sandbox_and_the_run_counts_nowhere(remote: Remote) -> None:
    stage = remote.stage
    file = await stage.upload("tool.sh", b"echo from-the-kit-$((40+2))")
    await stage.agent("by-hand", argv=["sh", "-c", "touch output/started"], files=[file])
    task = await stage.task()
    async with served(remote.app) as url:
        typed = "stty -echo; sh .home/kit/tool.sh; echo entries=$(ls output | wc -l); cat input.csv; exit 5\n"
        arguments = ("try", "by-hand@1", "--task", task, "--shell")
        trying = asyncio.create_task(command(remote, url, *arguments, typed=typed))

        async def queued() -> bool:
            async with stage.db.reading() as tx:
                found = (await runs.list(tx, stage.project.id, RunFilter())).items
            return bool(found)

        await until(queued, 60)
        async with stage.db.reading() as tx:
            (run,) = (await runs.list(tx, stage.project.id, RunFilter())).items
        await remote.start_worker(run.id)
        exit_code, shown = await trying
        assert exit_code == 5, shown
        assert "from-the-kit-42" in shown
        assert "entries=0" in shown, "nothing was started"
        assert "40" in shown
    row = await remote.end(run.id)
    assert row.outcome is Outcome.CANCELLED
    assert Flag.ASSISTED in row.flags
