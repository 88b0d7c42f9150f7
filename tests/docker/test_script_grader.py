"""Grading method ``script`` on a real engine: a task's own tests over what was sealed, and candidates that fight them."""

import asyncio
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.limits import MIB
from service.domain.tasks import FileRef, TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import GraderFault, GradingInput
from service.graders.script.grader import ScriptGrader
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from tests.docker.conftest import must_offer
from tests.needs import missing

pytestmark = pytest.mark.asyncio(loop_scope="session")
REWARD = "/logs/verifier/reward.txt"
RUNS_IT = f"if python3 output/answer.py | grep -qx 42; then echo 1 > {REWARD}; else echo 0 > {REWARD}; fi\n"


@pytest_asyncio.fixture(
    scope="session", loop_scope="session", params=["runc", pytest.param("runsc-planted", marks=pytest.mark.slow)]
)
async def rooms(request: pytest.FixtureRequest) -> AsyncIterator[EngineRooms]:
    data = Path(tempfile.mkdtemp(prefix="workstead-rooms-"))
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(4, (request.param,))) as made:
        if made is None:
            missing("no engine")
        await must_offer(made.backend, request.param)
        yield made
    shutil.rmtree(data)


class Store:
    """Files by digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ref(self, path: str, text: str) -> FileRef:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / digest).write_bytes(data)
        return FileRef(path=path, sha256=digest, size_bytes=len(data))


async def grade(
    rooms: EngineRooms,
    folder: Path,
    script: str,
    files: Mapping[str, str],
    visible: Mapping[str, str] | None = None,
    **settings: Any,
) -> Verdict:
    store = Store(folder)
    delivered = [store.ref(path, text) for path, text in files.items()]
    task = TaskManifest(
        name="t",
        instruction="i",
        visible=[store.ref(path, text) for path, text in (visible or {}).items()],
        hidden=[store.ref("tests/test.sh", script), store.ref("tests/data/expected.txt", "42\n")],
    )
    wanted = {"memory_bytes": 512 * MIB, "disk_bytes": 64 * MIB, "timeout_s": 20, **settings}
    given = GradingInput(
        wanted,
        [ArtifactEntry(f.path, EntryKind.FILE, f.size_bytes, f.sha256) for f in delivered],
        lambda _: (folder / "none").open("rb"),
        lambda entry: (folder / str(entry.sha256)).open("rb"),
        rooms=rooms,
        task=task,
        content_of=lambda digest: folder / digest,
    )
    grader = ScriptGrader()
    grader.check_settings(wanted, task)
    async with asyncio.timeout(120):
        return await grader.grade(given)


async def test_right_and_wrong(rooms: EngineRooms, tmp_path: Path) -> None:
    right = await grade(rooms, tmp_path, RUNS_IT, {"output/answer.py": "print(42)"})
    assert (right.state, right.score, right.max_score, right.detail["runs"]) == (VerdictState.GRADED, 1, 1, 1)
    assert right.detail["shares_user_with_tests"]
    wrong = await grade(rooms, tmp_path, RUNS_IT, {"output/answer.py": "print(41)"})
    assert (wrong.score, wrong.criteria[0]["passed"]) == (0, False)


async def test_what_the_verifier_finds(rooms: EngineRooms, tmp_path: Path) -> None:
    script = """
set -e
grep -qx 42 /tests/data/expected.txt
test "$(pwd)" = /workspace && test "$(cat inputs/a.txt)" = original && test "$(cat output/b.txt)" = mine
test -z "$(ls -A /workspace | grep tests)"
! touch /tests-are-elsewhere 2>/dev/null
! python3 -c 'import socket; socket.create_connection(("1.1.1.1", 80), 2)' 2>/dev/null
test "$WHO" = verifier
printf '{"reward": 0.5, "files": 2}' > /logs/verifier/reward.json
printf '{"results": {"tests": [{"name": "reads", "status": "passed"}]}}' > /logs/verifier/ctrf.json
"""
    found = await grade(
        rooms,
        tmp_path,
        script,
        {"output/b.txt": "mine"},
        {"inputs/a.txt": "original", "output/b.txt": "theirs"},
        env={"WHO": "verifier"},
    )
    assert (found.score, found.detail["rewards"]) == (0.5, {"files": 2.0}), found.detail
    assert [c["id"] for c in found.criteria] == ["reward", "reads"]


async def test_what_a_candidate_leaves_running_writes_no_reward(rooms: EngineRooms, tmp_path: Path) -> None:
    forger = f"""
import os, time
script = os.getppid()
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    while os.path.exists(f"/proc/{{script}}"):
        time.sleep(0.02)
    open({REWARD!r}, "w").write("1")
print(41)
"""
    found = await grade(rooms, tmp_path, RUNS_IT, {"output/answer.py": forger})
    assert (found.score, found.detail["left_processes"]) == (0, True)


async def test_a_script_that_does_not_end(rooms: EngineRooms, tmp_path: Path) -> None:
    hangs = {"output/answer.py": "import time; time.sleep(600)"}
    found = await grade(rooms, tmp_path, RUNS_IT, hangs, timeout_s=2)
    assert (found.score, found.criteria[0]["cause"], found.detail["runs"]) == (0, "verifier_timeout", 2)
    with pytest.raises(GraderFault) as caught:
        await grade(rooms, tmp_path, RUNS_IT, hangs, timeout_s=2, on_timeout="failed")
    assert caught.value.type == "verifier_timeout"


async def test_who_kills_everything_gets_nothing(rooms: EngineRooms, tmp_path: Path) -> None:
    found = await grade(rooms, tmp_path, RUNS_IT, {"output/answer.py": "import os; os.kill(-1, 9)"})
    assert (found.score, found.criteria[0]["cause"]) in ((0, "verifier_killed"), (0, None))


@pytest.mark.parametrize(
    ("script", "cause"),
    [("true", "no_reward"), (f"echo 7 > {REWARD}", "reward_unusable"), (f"echo yes > {REWARD}", "reward_unusable")],
)
async def test_no_word_of_the_verifier_is_no_score(rooms: EngineRooms, tmp_path: Path, script: str, cause: str) -> None:
    with pytest.raises(GraderFault) as caught:
        await grade(rooms, tmp_path, script, {"output/a": "x"})
    assert caught.value.type == cause


async def test_a_reward_that_is_a_link_is_none(rooms: EngineRooms, tmp_path: Path) -> None:
    with pytest.raises(GraderFault) as caught:
        await grade(rooms, tmp_path, f"ln -s /workspace/output/one {REWARD}", {"output/one": "1"})
    assert caught.value.type == "no_reward"


async def test_a_lost_blob_is_our_loss(rooms: EngineRooms, tmp_path: Path) -> None:
    task = TaskManifest(
        name="t", instruction="i", hidden=[FileRef(path="tests/test.sh", sha256="b" * 64, size_bytes=1)]
    )
    given = GradingInput(
        {}, [], lambda _: (tmp_path / "x").open("rb"), lambda _: (tmp_path / "x").open("rb"),
        rooms=rooms, task=task, content_of=lambda digest: tmp_path / digest,
    )  # fmt: skip
    with pytest.raises(GraderFault) as caught:
        await ScriptGrader().grade(given)
    assert caught.value.type == "hidden_missing"
