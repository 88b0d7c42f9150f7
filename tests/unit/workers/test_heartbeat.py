"""Self-fencing in virtual time: paused after 60 s without the database, killed after 120 s."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from service.domain.errors import Unavailable
from service.lifecycle.ports import Sandboxes
from service.sandboxes.contract import Sandbox, SandboxBackend
from service.store import hosts
from service.store.database import Database
from service.workers.heartbeat import Beating, HostTaken, heartbeat


class FakeSandbox:
    id = "sbx_1"

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []

    async def pause(self) -> None:
        self._note("pause")

    async def unpause(self) -> None:
        self._note("unpause")

    async def kill(self) -> None:
        self._note("kill")

    def _note(self, what: str) -> None:
        self.calls.append((what, asyncio.get_running_loop().time()))


class FakeDatabase:
    """Away from second 20 to second ``back``."""

    def __init__(self, back: float) -> None:
        self.back = back

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        if 20 <= asyncio.get_running_loop().time() < self.back:
            raise Unavailable("database_unavailable")
        yield


async def beat_for(seconds: float, back: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    async def beat(*_: Any) -> bool:
        return True

    monkeypatch.setattr(hosts, "beat", beat)
    sandbox, sandboxes = FakeSandbox(), Sandboxes(cast(SandboxBackend, None))
    sandboxes.hold(cast(Sandbox, sandbox))
    database = cast(Database, FakeDatabase(back))
    task = asyncio.create_task(heartbeat(database, "h", "e", sandboxes, Beating()))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [f"{what} at {round(at)}" for what, at in sandbox.calls]


@pytest.mark.looptime
async def test_a_short_outage_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await beat_for(200, 70, monkeypatch) == []


@pytest.mark.looptime
async def test_a_minute_pauses_until_the_database_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await beat_for(200, 100, monkeypatch) == ["pause at 75", "unpause at 100"]


@pytest.mark.looptime
async def test_two_minutes_kill_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await beat_for(300, 250, monkeypatch) == ["pause at 75", "kill at 135"]


@pytest.mark.looptime
async def test_a_host_that_was_taken_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def beat(*_: Any) -> bool:
        return False

    monkeypatch.setattr(hosts, "beat", beat)
    with pytest.raises(HostTaken):
        await heartbeat(cast(Database, FakeDatabase(0)), "h", "e", Sandboxes(cast(SandboxBackend, None)), Beating())
