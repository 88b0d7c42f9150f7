"""Rooms on a real engine: no network but a loopback, a workspace in memory, nothing left, also by a killed process."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from service.domain.limits import MIB, Limits
from service.sandboxes.contract import SandboxRefused, ToolFailed
from service.sandboxes.docker import selftest
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import DEPLOYMENT_LABEL
from service.sandboxes.docker.netns import check_own_namespace
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.testing.sandbox_bench import MemorySink
from tests.docker.conftest import must_offer
from tests.needs import missing

pytestmark = pytest.mark.asyncio(loop_scope="session")
LIMITS = Limits(memory_bytes=256 * MIB, disk_bytes=32 * MIB, inodes=2000, pids=64, shm_bytes=MIB)
GRADER = """
import asyncio, sys
from pathlib import Path
from service.domain.limits import MIB, Limits
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import RoomsConfig
async def main():
    async with open_rooms(Path(sys.argv[1]), sys.argv[2], RoomsConfig(2, ("runc",))) as rooms:
        async with rooms.open("base", Limits(memory_bytes=256 * MIB, disk_bytes=32 * MIB, inodes=2000), in_memory=sys.argv[3] == "memory"):
            print("in", flush=True)
            await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture
def data() -> Iterator[Path]:
    # Not pytest's own temporary directory: a mount left there would break every later session's clean-up.
    made = Path(tempfile.mkdtemp(prefix="workstead-rooms-"))
    yield made
    shutil.rmtree(made)


@pytest_asyncio.fixture(loop_scope="session", params=["runc", pytest.param("runsc-planted", marks=pytest.mark.slow)])
async def rooms(request: pytest.FixtureRequest, data: Path) -> AsyncIterator[EngineRooms]:
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(2, (request.param,))) as made:
        if made is None:
            missing("no engine")
        await must_offer(made.backend, request.param)
        yield made
        await made.close()
        assert await made.backend.list_ids() == []


async def test_a_room_reaches_no_address_of_the_host(rooms: EngineRooms) -> None:
    with selftest.host_listener() as listener:
        port = listener.getsockname()[1]
        targets = [f"{address} {port}" for address in ["127.0.0.1", *selftest.host_addresses()]]
        async with rooms.open("base", LIMITS, in_memory=True, runs_code=True) as room:
            probe = await room.exec(["/usr/bin/python3", "-c", selftest.PROBE, *targets], alone=True)
            interfaces = await room.exec(["/bin/ls", "/sys/class/net"])
    answers = probe.stdout.decode().splitlines()
    assert answers[0] == "127.0.0.1|error 111", "a loopback of its own, where nobody listens"
    assert len(answers) == len(targets)
    assert all("|error " in a for a in answers), answers
    assert interfaces.stdout.decode().split() in (["lo"], [])


async def test_what_a_room_is_was_attested(rooms: EngineRooms) -> None:
    async with rooms.open("base", LIMITS, in_memory=True, runs_code=True) as room:
        fields = room.attestation["fields"]
        assert (fields["NetworkDisabled"], fields["Networks"], fields["NetworkMode"]) == (True, [], "none")
        assert room.attestation["workspace"] == "memory"
        assert (await room.exec(["/bin/sh", "-c", "ls -A /workspace | wc -l"])).stdout.strip() == b"0"
        filled = await room.exec(["/bin/sh", "-c", f"head -c {64 * MIB} /dev/zero > /workspace/big"])
        assert filled.code != 0
        with pytest.raises(SandboxRefused):
            await room.collect(["output"], LIMITS, MemorySink())


async def test_a_workspace_in_memory_takes_at_most_half_of_it(rooms: EngineRooms) -> None:
    with pytest.raises(SandboxRefused, match="at most half"):
        async with rooms.open("base", LIMITS.model_copy(update={"disk_bytes": 200 * MIB}), in_memory=True):
            pass


async def test_a_call_that_is_alone_outlives_nothing(rooms: EngineRooms) -> None:
    async with rooms.open("base", LIMITS, in_memory=True, runs_code=True) as room:
        quiet = await room.exec(["/bin/true"], alone=True)
        assert (quiet.left, quiet.remains) == (False, ())
        spawns = "for i in 1 2 3; do setsid sleep 60 & done; echo x > note; echo done"
        loud = await room.exec(["/bin/sh", "-c", spawns], alone=True)
        assert (loud.stdout, loud.left, loud.remains) == (b"done\n", True, ("/workspace/note",))
        assert b"sleep" not in (await room.exec(["/bin/sh", "-c", "cat /proc/[0-9]*/comm"])).stdout
        flood = await room.exec(["/bin/sh", "-c", "yes; sleep 60"], alone=True, limit_bytes=1000, timeout_s=30)
        assert (flood.truncated, flood.timed_out, flood.signal) == (True, False, 9)
        busy = asyncio.create_task(room.exec(["/bin/sleep", "3"]))
        await asyncio.sleep(0.5)
        with pytest.raises(ToolFailed, match="other calls"):
            await room.exec(["/bin/true"], alone=True)
        await busy


async def test_a_shared_network_namespace_is_noticed() -> None:
    with pytest.raises(SandboxRefused):
        check_own_namespace(os.getpid())


@pytest.mark.fault(102)
@pytest.mark.parametrize("kind", ["memory", pytest.param("disk", marks=pytest.mark.slow)])
async def test_what_a_killed_process_left_is_removed_and_a_living_ones_is_not(kind: str, data: Path) -> None:
    name = f"tests-{uuid.uuid4().hex[:8]}"

    def start() -> subprocess.Popen[bytes]:
        made = subprocess.Popen([sys.executable, "-c", GRADER, str(data), name, kind], stdout=subprocess.PIPE)
        assert made.stdout is not None
        assert made.stdout.readline() == b"in\n"
        return made

    engine = Engine()
    living, killed = [await asyncio.to_thread(start) for _ in range(2)]
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert [len(await engine.containers(f"{DEPLOYMENT_LABEL}={name}-g{n}")) for n in (0, 1)] == [1, 1]
        async with open_rooms(data, name, RoomsConfig(2, ("runc",))) as rooms:
            assert rooms is not None
            async with asyncio.timeout(60), rooms.open("base", LIMITS, in_memory=True):
                left = [len(await engine.containers(f"{DEPLOYMENT_LABEL}={name}-g{n}")) for n in (0, 1)]
                assert left == [1, 1], "the living one's and ours, under the number of the killed one"
            living.terminate()
    finally:
        for process in (living, killed):
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    async with open_rooms(data, name, RoomsConfig(2, ("runc",))) as rooms:
        assert rooms is not None
        await rooms.sweep()
        assert await rooms.backend.list_ids() == []
    assert [len(await engine.containers(f"{DEPLOYMENT_LABEL}={name}-g{n}")) for n in (0, 1)] == [0, 0]
    engine.close()
