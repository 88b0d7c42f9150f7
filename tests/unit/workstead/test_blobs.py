"""Uploads: only missing bytes travel, from where the last try stopped."""

import hashlib
from pathlib import Path

import httpx
import pytest

from tests.unit.workstead.fake_api import Script, client, problem, sync_client
from workstead.errors import Disconnected, Invalid, Problem
from workstead.task_dir import Bundle

DATA = bytes(range(256)) * 8
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.bin"
    path.write_bytes(DATA)
    return path


def progress(status: int, offset: int, complete: bool = False) -> httpx.Response:
    return httpx.Response(status, headers={"Upload-Offset": str(offset), "Upload-Complete": "?1" if complete else "?0"})


async def test_what_is_there_does_not_travel(file: Path) -> None:
    async with client(Script(progress(200, len(DATA), complete=True))) as api:
        assert await api.blobs.upload(file, SHA) is False


@pytest.mark.parametrize("broken", [httpx.WriteError("cut"), progress(204, 1000), problem(409, "wrong_offset")])
async def test_an_upload_goes_on_where_it_stopped(file: Path, broken: httpx.Response | Exception) -> None:
    script = Script(progress(404, 0), broken, progress(204, 1000), progress(201, len(DATA), complete=True))
    async with client(script) as api:
        assert await api.blobs.upload(file, SHA) is True
    assert script.bodies[-1] == DATA[1000:]
    assert script.requests[-1].headers["Upload-Offset"] == "1000"
    assert script.requests[-1].headers["Content-Length"] == str(len(DATA) - 1000)


def test_the_generated_client_uploads_too(file: Path) -> None:
    script = Script(progress(404, 0), progress(201, len(DATA), complete=True))
    with sync_client(script) as api:
        assert api.blobs.upload(file, SHA) is True
    assert script.bodies[-1] == DATA


async def test_an_upload_without_progress_ends(file: Path) -> None:
    stuck = [answer for _ in range(5) for answer in (progress(204, 10), httpx.WriteError("cut"))]
    async with client(Script(*stuck, progress(204, 10))) as api:
        with pytest.raises(Disconnected, match="no progress"):
            await api.blobs.upload(file, SHA)


async def test_a_wrong_digest_is_raised(file: Path) -> None:
    async with client(Script(progress(404, 0), problem(422, "wrong_digest"))) as api:
        with pytest.raises(Invalid):
            await api.blobs.upload(file, SHA)


async def test_a_task_uploads_exactly_what_the_server_misses(file: Path) -> None:
    script = Script(
        problem(422, "missing_blobs", missing=[SHA]),
        progress(404, 0),
        progress(201, len(DATA), complete=True),
        httpx.Response(201, json={"id": "task_1", "name": "t", "digest": "sha256:00"}),
    )
    async with client(script) as api:
        assert (await api.tasks.create(Bundle({"name": "t"}, {SHA: file, "0" * 64: file}))).id == "task_1"
    assert [r.method for r in script.requests] == ["POST", "HEAD", "PUT", "POST"]


@pytest.mark.parametrize("missing", [["1" * 64], [], None])
async def test_a_blob_that_we_do_not_have_is_the_caller_s_problem(file: Path, missing: list[str] | None) -> None:
    async with client(Script(problem(422, "missing_blobs", missing=missing))) as api:
        with pytest.raises(Problem, match="missing_blobs"):
            await api.tasks.create(Bundle({"name": "t"}, {SHA: file}))
