"""A person's clock stands still while the run is paused, and so does the sandbox, whichever worker holds it."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from service.domain.run_states import EndedBecause, Phase
from service.store import clock, pauses
from service.testing.memory_sandbox import MemorySandbox
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import until


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Sandboxes that stand still: nothing is started in a person's, so that there is no process to look at."""
    found: set[str] = set()

    async def pause(self: MemorySandbox) -> None:
        found.add(self.id)

    async def unpause(self: MemorySandbox) -> None:
        found.discard(self.id)

    monkeypatch.setattr(MemorySandbox, "pause", pause)
    monkeypatch.setattr(MemorySandbox, "unpause", unpause)
    return found


async def now(remote: Remote) -> datetime:
    async with remote.stage.db.reading() as tx:
        return await clock.now(tx)


async def until_frozen(frozen: set[str], *, yes: bool) -> None:
    async def look() -> bool:
        return bool(frozen) is yes

    await until(look)


async def begun(remote: Remote, seconds: float = 600) -> str:
    task = await remote.stage.task(limits={"wall_clock_s": seconds})
    run = await remote.begin(await remote.agent("person"), task)
    await remote.claim(run.id, "a person")
    return run.id


async def test_the_deadline_moves_by_the_pause(remote: Remote, frozen: set[str]) -> None:
    run_id = await begun(remote, 8)
    before = (await remote.stage.row(run_id)).deadline_at
    assert before is not None
    paused = await remote.call("POST", f"/v1/runs/{run_id}/pause")
    assert paused["phase"] == "paused"
    await until_frozen(frozen, yes=True)
    assert (await remote.exec(run_id, "true", status=409))["type"].endswith("run_paused")

    async def past_the_deadline() -> bool:
        return await now(remote) > before + timedelta(seconds=0.5)

    await until(past_the_deadline)
    assert await remote.stage.is_in(run_id, Phase.PAUSED)
    assert (await remote.call("POST", f"/v1/runs/{run_id}/pause"))["phase"] == "paused"
    assert (await remote.call("POST", f"/v1/runs/{run_id}/resume"))["phase"] == "running"
    await until_frozen(frozen, yes=False)
    after = (await remote.stage.row(run_id)).deadline_at
    stood = await pauses_of(remote, run_id)
    assert after is not None
    assert (after - before).total_seconds() == pytest.approx(stood.total_s, abs=0.01)
    await remote.call("POST", f"/v1/runs/{run_id}/finish", 202, json={})
    run = await remote.end(run_id)
    assert run.ended_because is EndedBecause.COMPLETED
    assert run.ended_at is not None
    assert run.started_at is not None
    assert (run.wall_s or 0) < (run.ended_at - run.started_at).total_seconds() - stood.total_s / 2
    said = [e.payload["phase"] for e in await remote.stage.events(run_id, "run.phase")]
    assert said[said.index("running") :][:3] == ["running", "paused", "running"]


async def test_a_pause_survives_its_worker(remote: Remote, frozen: set[str]) -> None:
    run_id = await begun(remote)
    await remote.call("POST", f"/v1/runs/{run_id}/pause")
    await until_frozen(frozen, yes=True)
    await remote.kill_worker()
    await an_hour_ago(remote)
    await remote.start_worker(run_id)
    frozen.clear()  # the new worker says it, too
    await until_frozen(frozen, yes=True)
    assert await remote.stage.is_in(run_id, Phase.PAUSED)
    await remote.kill_worker()
    await remote.call("POST", f"/v1/runs/{run_id}/resume")  # while nobody holds the sandbox
    await remote.start_worker(run_id)
    await until_frozen(frozen, yes=False)
    await remote.call("POST", f"/v1/runs/{run_id}/finish", 202, json={})
    run = await remote.end(run_id)
    assert run.ended_because is EndedBecause.COMPLETED
    assert (run.wall_s or 0) < 1800


async def pauses_of(remote: Remote, run_id: str) -> pauses.Standing:
    async with remote.stage.db.reading() as tx:
        return await pauses.standing(tx, run_id, 1)


async def an_hour_ago(remote: Remote) -> None:
    """Let all that happened have happened an hour earlier: the deadline passed during the pause."""
    moved = [
        "UPDATE attempts SET started_at = started_at - interval '1 h', deadline_at = deadline_at - interval '1 h'",
        "UPDATE runs SET deadline_at = deadline_at - interval '1 h'",
        "UPDATE pauses SET created_at = created_at - interval '1 h'",
    ]
    async with remote.stage.db.transaction() as tx:
        for statement in moved:
            await tx.execute(text(statement))


@pytest.mark.parametrize("way", ["finish", "stop"])
async def test_a_paused_run_can_be_ended(remote: Remote, frozen: set[str], way: str) -> None:
    run_id = await begun(remote)
    await remote.call("POST", f"/v1/runs/{run_id}/pause")
    await until_frozen(frozen, yes=True)
    if way == "finish":
        await remote.call("POST", f"/v1/runs/{run_id}/finish", 202, json={})
    else:
        await remote.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "collect"})
    run = await remote.end(run_id)
    assert run.ended_because is (EndedBecause.COMPLETED if way == "finish" else EndedBecause.STOPPED)
    refused = await remote.call("POST", f"/v1/runs/{run_id}/pause", 409)
    assert refused["type"].endswith("run_not_running")
    assert (await remote.call("POST", f"/v1/runs/{run_id}/resume"))["phase"] == "done"


async def test_finishing_ends_a_pause_after_the_grace(remote: Remote, frozen: set[str]) -> None:
    task = await remote.stage.task(limits={"wall_clock_s": 600, "grace_s": 1})
    run = await remote.begin(await remote.agent("person"), task)
    await remote.call("POST", f"/v1/runs/{run.id}/pause")
    await until_frozen(frozen, yes=True)
    await remote.call("POST", f"/v1/runs/{run.id}/stop", json={"mode": "finish"})
    assert (await remote.end(run.id)).ended_because is EndedBecause.WALL_CLOCK


async def test_pauses_are_bounded(remote: Remote, frozen: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "MOST", 2)
    run_id = await begun(remote)
    for _ in range(2):
        await remote.call("POST", f"/v1/runs/{run_id}/pause")
        await remote.call("POST", f"/v1/runs/{run_id}/resume")
    refused = await remote.call("POST", f"/v1/runs/{run_id}/pause", 409)
    assert refused["type"].endswith("too_many_pauses")


async def test_a_pause_that_takes_too_long_ends_by_itself(
    remote: Remote, frozen: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await begun(remote)
    await remote.call("POST", f"/v1/runs/{run_id}/pause")
    await until_frozen(frozen, yes=True)
    monkeypatch.setattr(pauses, "MOST_TIME", timedelta(seconds=0.1))
    await until(lambda: remote.stage.is_in(run_id, Phase.RUNNING))
    await until_frozen(frozen, yes=False)


async def test_who_may(remote: Remote) -> None:
    run_id = await begun(remote)
    driver = {"Authorization": f"Bearer {await remote.other_token('runs:drive')}"}
    wrong = await remote.call("POST", f"/v1/runs/{run_id}/pause", 409, headers=driver, lease="lease_of_nobody")
    assert wrong["type"].endswith("lease_lost")
    assert (await remote.call("POST", f"/v1/runs/{run_id}/pause", headers=driver))["phase"] == "paused"
    reader = {"Authorization": f"Bearer {await remote.other_token('runs:read')}"}
    await remote.call("POST", f"/v1/runs/{run_id}/resume", 403, headers=reader)
    writer = {"Authorization": f"Bearer {await remote.other_token('runs:write')}"}
    assert (await remote.call("POST", f"/v1/runs/{run_id}/resume", headers=writer, lease=""))["phase"] == "running"


async def test_only_people_pause(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    refused = await remote.call("POST", f"/v1/runs/{run.id}/pause", 409)
    assert refused["type"].endswith("not_person")
    assert await remote.stage.is_in(run.id, Phase.RUNNING)
