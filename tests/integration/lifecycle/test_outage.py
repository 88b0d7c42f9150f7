"""PostgreSQL dies under a run that is talking: the run waits, then nothing is missing (fault 116)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from service.domain.run_states import EndedBecause, Outcome
from service.supervisor.postgres import EmbeddedPostgres
from service.testing.memory_sandbox import MemoryHost
from tests.fixtures.migrated import make_template
from tests.fixtures.postgres import new_database, open_directory
from tests.integration.lifecycle.stage import RIGHT, Stage, until

CODE = f"""
import json, time
for i in range(200):
    print("line", i, flush=True)
    time.sleep(0.02)
json.dump({RIGHT!r}, open("output/answers.json", "w"))
"""


@pytest.mark.fault(116)
async def test_the_database_is_killed_and_comes_back(tmp_path: Path) -> None:
    with open_directory() as directory, EmbeddedPostgres(directory, durable=False) as server:
        template = await asyncio.to_thread(make_template, server.url_for("postgres"))
        machine = MemoryHost()
        with new_database(server, template) as url:
            async with Stage.open(url, tmp_path, machine) as stage:
                run = await stage.submit(await stage.task(), await stage.agent(code=CODE))
                work = asyncio.create_task(stage.work(stage.context(), run.id))
                await until(lambda: stage.has_event(run.id, "output"))
                pid = server.pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.5)
                server.start()
                await asyncio.wait_for(work, 60)
                await stage.grade_all()
                row = await stage.row(run.id)
                assert (row.outcome, row.ended_because) == (Outcome.GRADED, EndedBecause.COMPLETED)
                assert await stage.output(run.id) == "".join(f"line {i}\n" for i in range(200))
        machine.close()
