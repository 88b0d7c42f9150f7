"""Whose call leaves next: never more than there are places, and no project waits behind all the calls of another."""

import asyncio

import pytest

from service.lifecycle.judge_turns import Turns


class Calls:
    """Calls that last until they are let go, in the order in which they got their places."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.got, self.tasks = turns, list[str](), list[asyncio.Task[None]]()
        self.go: dict[str, asyncio.Event] = {}

    def add(self, project: str, count: int, model: str = "m", most: int | None = None) -> None:
        for _ in range(count):
            name = f"{project}{len(self.tasks)}"
            self.go[name] = asyncio.Event()
            self.tasks.append(asyncio.create_task(self._call(name, project, model, most)))

    async def _call(self, name: str, project: str, model: str, most: int | None) -> None:
        async with self.turns.place(project, model, most):
            self.got.append(name)
            await self.go[name].wait()

    async def end(self, name: str) -> None:
        self.go[name].set()
        await settled()

    async def end_all(self) -> None:
        for event in self.go.values():
            event.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_project_with_few_calls_does_not_wait_for_one_with_many() -> None:
    calls = Calls(Turns(2))
    calls.add("a", 50)
    await settled()
    calls.add("b", 3)
    await settled()
    assert calls.got == ["a0", "a1"]
    for name in ("a0", "a1", "a2", "b50"):
        await calls.end(name)
    assert calls.got[2:6] == ["a2", "b50", "a3", "b51"]
    await calls.end_all()
    assert len(calls.got) == 53


async def test_bounds_of_a_project_and_of_a_model() -> None:
    calls = Calls(Turns(10, per_project=3))
    calls.add("a", 5, "slow", most=1)
    calls.add("a", 5, "fast")
    calls.add("b", 2, "slow", most=1)
    await settled()
    assert sorted(calls.got) == ["a0", "a5", "a6", "b10"], "one to the slow model from each, three of a in all"
    await calls.end_all()
    assert len(calls.got) == 12


@pytest.mark.parametrize("when", ["waiting", "just served"])
async def test_whoever_gives_up_leaves_no_place_taken(when: str) -> None:
    calls = Calls(Turns(1))
    calls.add("a", 3)
    await settled()
    if when == "just served":
        calls.go["a0"].set()
        await asyncio.sleep(0)  # a0 leaves, a1 is served and does not know yet
    calls.tasks[1].cancel()
    await settled()
    await calls.end("a0")
    assert calls.got == ["a0", "a2"]
    await calls.end_all()
