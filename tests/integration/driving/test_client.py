"""The client package's way to drive a run, over a real connection."""

import json
import zipfile
from pathlib import Path

import pytest

from service.domain.run_states import EndedBecause, Outcome
from service.store import leases
from tests.api.helpers import served
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import RIGHT, until
from workstead.aio import AsyncClient
from workstead.errors import Conflict, Invalid, NotFound
from workstead.heartbeat import Heartbeat


async def test_a_loop_with_the_client_is_graded(remote: Remote) -> None:
    run = await remote.stage.submit(await remote.stage.task(), await remote.agent())
    await remote.start_worker(run.id)
    async with served(remote.app) as url, AsyncClient(url, remote.token) as client:
        async with client.drive(run.id, holder="a client") as box:
            assert (await box.assignment()).instruction == "Add up input.csv."
            assert box.lease.attempt == 1
            done = await box.exec(["sh", "-c", "cat input.csv; pwd | wc -l"], env={"A": "b"})
            assert (done.code, done.stdout.split()) == (0, ["40", "2", "1"])
            await box.write("output/answers.json", json.dumps(RIGHT).encode())
            assert [f.name for f in await box.list("output")] == ["answers.json"]
            assert json.loads(await box.read("output/answers.json")) == RIGHT
            with pytest.raises(NotFound):
                await box.read("none")
            with pytest.raises(Invalid):
                await box.exec(["no-such-program"])
            await box.usage(input_tokens=5, output_tokens=6)
            await box.finish("done")
        row = await remote.end(run.id)
    assert (row.outcome, row.ended_because, row.output_tokens) == (Outcome.GRADED, EndedBecause.COMPLETED, 6)


async def test_leaving_without_finish_gives_the_run_back(remote: Remote) -> None:
    run = await remote.begin()
    async with served(remote.app) as url, AsyncClient(url, remote.token) as client:
        with pytest.raises(ZeroDivisionError):
            async with client.drive(run.id, holder="one"):
                raise ZeroDivisionError
        async with client.drive(run.id, holder="two") as box:
            await box.finish(success=False)
        assert (await remote.end(run.id)).ended_because is EndedBecause.SCAFFOLD_ERROR
        with pytest.raises(Conflict):
            async with client.drive(run.id, holder="three"):
                raise AssertionError
    actions = [e.payload["action"] for e in await remote.stage.events(run.id, "driver")]
    assert actions == ["claimed", "released", "claimed", "finished"]


async def test_the_heartbeat_keeps_the_lease_until_it_is_lost(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)

    async def expires() -> object:
        async with remote.stage.db.reading() as tx:
            lease = await leases.get(tx, run.id)
        return lease and lease.expires_at

    first = await expires()
    async with served(remote.app) as url:
        with Heartbeat(url, remote.token, run.id, remote.lease, 0.05) as beat:

            async def moved() -> bool:
                return await expires() != first

            async def lost() -> bool:
                return beat.lost

            await until(moved)
            assert not beat.lost
            await remote.call("POST", f"/v1/runs/{run.id}/release", 204)
            await until(lost)


async def test_a_bundle_has_everything_and_says_what_is_missing(remote: Remote, tmp_path: Path) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    await remote.exec(run.id, "echo", "hello from the sandbox")
    await remote.call("POST", f"/v1/runs/{run.id}/finish", 202, json={})
    await remote.end(run.id)
    target = tmp_path / "run.zip"
    async with served(remote.app) as url, AsyncClient(url, remote.token) as client:
        names = await client.runs.bundle(run.id, target)
        with pytest.raises(FileExistsError):
            await client.runs.bundle(run.id, target)
    expected = {"run.json", "agent.json", "attempts.json", "artifacts.json", "gradings.json", "events.jsonl"}
    assert expected <= set(names)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        events = [json.loads(line) for line in archive.read("events.jsonl").splitlines()]
        everything = b"".join(archive.read(name) for name in names)
        env = json.loads(archive.read("attempts.json"))[0]["env"]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert b"hello from the sandbox" in everything
    assert env["WORKSTEAD_RUN_TOKEN"] == "redacted"
    assert remote.lease.encode() not in everything
    assert b"wsr_" not in everything
