"""Rooms: bounded, first come first served, destroyed in any case; what a dead process left is found, a living one's not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from service.domain.limits import Limits
from service.sandboxes.contract import EngineError, Sandbox, SandboxRefused, SandboxSpec
from service.sandboxes.docker import rooms as module
from service.sandboxes.docker.room_host import has_engine, open_rooms, rooms_of_process
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.testing.memory_sandbox import MemoryBackend, MemoryHost, MemorySandbox


class Backend(MemoryBackend):
    """Fails on demand, and offers what it is told to."""

    def __init__(self, host: MemoryHost | None = None, offered: Sequence[str] = ("runc",)) -> None:
        super().__init__(host)
        self.offered = offered
        self.failures = 0
        self.made: list[SandboxSpec] = []
        self.asked = 0

    async def offered_runtimes(self) -> Sequence[str]:
        return self.offered

    async def resolve_image(self, name: str) -> str:
        self.asked += 1
        return await super().resolve_image(name)

    async def make(self, spec: SandboxSpec) -> MemorySandbox:
        self.made.append(spec)
        if self.failures:
            self.failures -= 1
            raise EngineError("engine_unreachable", "away")
        return await super().make(SandboxSpec(spec.environment, None, spec.limits))


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    made = Backend()
    yield made
    assert await made.list_ids() == [], "a room is left"
    made.host.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("did not happen")


async def test_rooms_are_bounded_and_given_in_order(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(2))
    order: list[int] = []
    most = 0

    async def use(number: int) -> None:
        nonlocal most
        async with rooms.open("base", Limits()):
            order.append(number)
            most = max(most, len(await backend.list_ids()))
            await asyncio.sleep(0.01)

    async with asyncio.timeout(10):
        await asyncio.gather(*(use(n) for n in range(8)))
    await rooms.close()
    assert (order, most) == (list(range(8)), 2)


async def test_a_room_is_destroyed_after_an_error_and_after_a_cancellation(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(1))
    with pytest.raises(ZeroDivisionError):
        async with rooms.open("base", Limits()):
            raise ZeroDivisionError

    async def stay() -> None:
        async with rooms.open("base", Limits()):
            await asyncio.sleep(60)

    task = asyncio.create_task(stay())
    await until(lambda: bool(backend.host.sandboxes))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(5), rooms.open("base", Limits()):
        pass
    await rooms.close()


async def test_a_room_that_cannot_be_destroyed_keeps_its_place(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = EngineRooms(backend, RoomsConfig(1))
    refusals = 3
    destroy = MemorySandbox.destroy

    async def reluctant(sandbox: MemorySandbox) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise EngineError("engine_unreachable", "away")
        await destroy(sandbox)

    monkeypatch.setattr(MemorySandbox, "destroy", reluctant)
    async with rooms.open("base", Limits()) as first:
        pass
    async with asyncio.timeout(5), rooms.open("base", Limits()):
        assert (refusals, first.id in await backend.list_ids()) == (0, False)
    await rooms.close()


async def test_an_engine_that_fails_is_asked_again_while_patience_lasts(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(1, patience_s=5))
    backend.failures = 3
    async with rooms.open("base", Limits()):
        assert len(backend.made) == 4
    backend.failures = 1000
    impatient = EngineRooms(backend, RoomsConfig(1, patience_s=0.05))
    for _ in range(3):  # a failure gives its place back
        with pytest.raises(EngineError):
            async with impatient.open("base", Limits()):
                pass
    await rooms.close()


async def test_an_image_that_is_not_there_is_refused_at_once(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(1, patience_s=60))
    async with asyncio.timeout(1):
        with pytest.raises(SandboxRefused):
            async with rooms.open("nothing", Limits()):
                pass


async def test_what_a_name_means_is_not_asked_for_every_room(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(1))
    for _ in range(3):
        async with rooms.open("base", Limits()):
            pass
    await rooms.close()
    assert backend.asked <= 4  # one of the rooms', and the backend's own at each make


@pytest.mark.parametrize(
    ("offered", "runs_code", "taken"),
    [
        (("runc", "runsc-planted"), True, "runsc-planted"),
        (("runc", "runsc-planted"), False, "runc"),
        (("runc",), True, "runc"),
        (("runsc-planted",), False, "runsc-planted"),
    ],
)
async def test_candidates_programs_get_the_strongest_isolation(
    backend: Backend, offered: tuple[str, ...], runs_code: bool, taken: str
) -> None:
    backend.offered = offered
    rooms = EngineRooms(backend)
    async with rooms.open("base", Limits(), runs_code=runs_code, in_memory=True):
        assert [(s.runtime, s.in_memory) for s in backend.made] == [(taken, True)]
    await rooms.close()


async def test_no_allowed_runtime_is_a_refusal(backend: Backend) -> None:
    rooms = EngineRooms(backend, RoomsConfig(code_runtimes=("runsc-planted",)))
    with pytest.raises(SandboxRefused, match="offers none"):
        async with rooms.open("base", Limits(), runs_code=True):
            pass


async def test_an_engine_whose_self_tests_all_fail_is_asked_again(backend: Backend) -> None:
    rooms, backend.offered = EngineRooms(backend, RoomsConfig(patience_s=5)), ()

    async def enter() -> None:
        async with rooms.open("base", Limits()):
            pass

    opening = asyncio.create_task(enter())
    await asyncio.sleep(0.05)
    assert not opening.done()
    backend.offered = ("runc",)
    await opening
    await rooms.close()


class Machine:
    """Backends by deployment id, as the engine of one machine has them."""

    def __init__(self) -> None:
        self.hosts: dict[str, MemoryHost] = {}

    def make(self, folder: Path, deployment: str) -> Backend:
        assert folder.name == deployment.rpartition("-g")[2]
        return Backend(self.hosts.setdefault(deployment, MemoryHost()))

    async def left(self, deployment: str) -> list[str]:
        return sorted(self.hosts[deployment].sandboxes)


async def leave_one(machine: Machine, folder: Path, deployment: str) -> Sandbox:
    """What a killed process leaves: a room, and a lock file that nobody holds."""
    backend = machine.make(folder / deployment.rpartition("-g")[2], deployment)
    (folder / f"{deployment.rpartition('-g')[2]}.lock").touch()
    return await MemoryBackend.make(backend, SandboxSpec(await backend.resolve_image("base")))


async def test_each_process_has_its_own_number_and_removes_only_what_dead_ones_left(tmp_path: Path) -> None:
    machine, folder = Machine(), tmp_path / "grading"
    folder.mkdir()
    for name in ("ws-g0", "ws-g3"):
        await leave_one(machine, folder, name)
    config = RoomsConfig(2)
    async with rooms_of_process(tmp_path, "ws", config, machine.make) as first, first.open("base", Limits()) as kept:
        assert await machine.left("ws-g0") == [kept.id]
        async with rooms_of_process(tmp_path, "ws", config, machine.make) as second, second.open("base", Limits()):
            await until(lambda: not machine.hosts["ws-g3"].sandboxes)
            assert await machine.left("ws-g0") == [kept.id]
            assert len(await machine.left("ws-g1")) == 1
    assert [await machine.left(name) for name in ("ws-g0", "ws-g1", "ws-g3")] == [[], [], []]
    for host in machine.hosts.values():
        host.close()


class Examined(Backend):
    """A backend whose self-tests take a moment."""

    tests = 0

    async def offered_runtimes(self) -> Sequence[str]:
        await asyncio.sleep(0.1)
        self.tests += 1
        return await super().offered_runtimes()


async def test_runtimes_are_tested_at_the_start_and_no_test_is_cut_off(tmp_path: Path) -> None:
    backend = Examined()
    async with rooms_of_process(tmp_path, "ws", RoomsConfig(), lambda _folder, _name: backend):
        pass
    assert backend.tests == 1


async def test_no_engine_no_rooms(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/docker.sock"
    async with open_rooms(tmp_path, "ws", RoomsConfig(), docker_url=nowhere) as rooms:
        assert rooms is None
    assert not (tmp_path / "grading").exists()
    (tmp_path / "docker.sock").touch()
    assert has_engine(nowhere)
    assert has_engine("tcp://127.0.0.1:1")
