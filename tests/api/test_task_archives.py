"""Tasks from archives: the same task as from its manifest, and nothing at all of an archive that is not taken."""

import asyncio
import errno
import gzip
import json
import lzma
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import pytest
import zstandard
from starlette.types import Message

from service.api.state import ApiState
from service.store.blob_files import NewFile
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant
from tests.unit.api.task_trees import EXAMPLE, PAGE, WHOLE, files_below, packed, write_tree
from tests.unit.archives.reading import block, zipped

TREE = {
    **WHOLE,
    "visible/in/data.bin": os.urandom(900_000),
    "visible/in/same.bin": b"twice",
    "visible/twin.bin": b"twice",
    "hidden/answers.json": b'{"n": 1}',
    "notes/ignored.txt": b"never kept",
}
TAR = "application/x-tar"
PACKED: dict[str, Callable[[], bytes]] = {
    TAR: lambda: packed(TREE),
    "application/gzip": lambda: gzip.compress(packed(TREE)),
    "application/x-gzip; charset=binary": lambda: gzip.compress(packed(TREE)),
    "application/zstd": lambda: zstandard.compress(packed(TREE)),
    "application/x-xz": lambda: lzma.compress(packed(TREE)),
    "application/zip": lambda: zipped(TREE.items()),
    "application/x-zip-compressed": lambda: zipped(TREE.items()),
}


async def _post(tenant: Tenant, data: bytes, type: str = TAR, **headers: str) -> Any:
    return await tenant.client.post("/v1/tasks", content=data, headers={"Content-Type": type, **headers})


def _files(tenant: Tenant) -> list[Path]:
    return files_below(tenant.state.blobs.root)


async def _assert_nothing(tenant: Tenant) -> None:
    assert _files(tenant) == []
    assert (await tenant.get("/v1/tasks"))["data"] == []
    assert tenant.state.open_archives == 0


@pytest.mark.parametrize("type", PACKED)
async def test_every_kind_makes_the_same_task(tenant: Tenant, type: str) -> None:
    answer = await _post(tenant, PACKED[type](), type)
    assert answer.status_code == 201, answer.text
    task = answer.json()
    assert answer.headers["location"] == f"/v1/tasks/{task['id']}"
    assert [f["path"] for f in task["manifest"]["visible"]] == ["in/data.bin", "in/same.bin", "twin.bin"]
    assert (task["manifest"]["instruction"], task["manifest"]["name"]) == ("Do it.\n", "t/one")
    as_json = await tenant.client.post("/v1/tasks", json=task["manifest"])
    assert (as_json.status_code, as_json.json()["id"]) == (200, task["id"])
    assert (await _post(tenant, PACKED[TAR]())).json()["id"] == task["id"]
    data = task["manifest"]["visible"][0]["sha256"]
    assert (await tenant.client.get(f"/v1/blobs/{data}")).content == TREE["visible/in/data.bin"]
    assert len(_files(tenant)) == 3


async def test_what_an_archive_brought_is_its_projects_own(tenant: Tenant, other: Tenant) -> None:
    task = (await _post(tenant, packed(TREE))).json()
    await other.get(f"/v1/tasks/{task['id']}", 404)
    assert (await other.client.get(f"/v1/blobs/{task['manifest']['visible'][0]['sha256']}")).status_code == 404
    missing = await other.post("/v1/tasks", task["manifest"], 422)
    assert missing["type"].endswith(":missing_blobs")


async def test_it_needs_the_scope_of_tasks(tenant: Tenant) -> None:
    headers = await tenant.token("tasks:read")
    answer = await _post(tenant, packed(TREE), **headers)
    assert answer.status_code == 403
    writer = await tenant.token("tasks:write")
    task = (await _post(tenant, packed(TREE), **writer)).json()
    assert task["manifest"]["hidden"] is None


@pytest.mark.fault(21, 22, 25, 30)
@pytest.mark.parametrize(
    ("data", "type", "slug"),
    [
        (packed(WHOLE | {"visible/../../x": b"1"}), TAR, "archive_unsafe_path"),
        (block(b"visible/l", kind=b"2", link=b"/etc".ljust(100, b"\0")) + packed(WHOLE), TAR, "archive_unsafe_entry"),
        (packed(TREE)[:512_000], TAR, "archive_malformed"),
        (gzip.compress(packed(WHOLE)) + b"x", "application/gzip", "archive_malformed"),
        (packed(TREE), "application/gzip", "archive_malformed"),
        (packed(TREE), "application/zip", "archive_malformed"),
        (b"", "application/zip", "archive_malformed"),
        (packed({"a/task.toml": b"", "b/task.toml": b""}), TAR, "invalid_task_bundle"),
        (packed(WHOLE | {"task.toml": b'name = "../x"'}), TAR, "invalid_request"),
        (packed(WHOLE | {"task.toml": b'name = "t"\nlimits = {pids = 1}'}), TAR, "invalid_request"),
        (packed(WHOLE | {"task.toml": b'name = "t"\ngraders = [{method = "no"}]'}), TAR, "unknown_grading_method"),
        (packed(WHOLE | {"visible/.home/x": b"1"}), TAR, "invalid_request"),
    ],
)
async def test_of_a_refused_archive_nothing_stays(tenant: Tenant, data: bytes, type: str, slug: str) -> None:
    answer = await _post(tenant, data, type)
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, slug), answer.text
    await _assert_nothing(tenant)


async def test_the_entry_is_named_and_inert(tenant: Tenant) -> None:
    problem = (await _post(tenant, packed({"\x1b]0;evil\x07/../x": b""}))).json()
    assert problem["entry"] == "\\x1b]0;evil\\x07/../x"
    assert problem["detail"].isprintable()


async def test_limits_of_size(tenant: Tenant, state: ApiState) -> None:
    small = Tenant(_with(state, max_archive_bytes=100_000), tenant.project_id, tenant.client, tenant.secret)
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield block(b"task.toml", size=1 << 30)
        while True:
            sent += 1
            yield bytes(65_536)

    transport = httpx.ASGITransport(app_of(small.state), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=tenant.bearer) as client:
        said = await client.post("/v1/tasks", content=packed(TREE), headers={"Content-Type": TAR})
        assert (said.status_code, said.json()["type"]) == (413, "urn:workstead:problem:body_too_large")
        streamed = await client.post("/v1/tasks", content=endless(), headers={"Content-Type": TAR})
        assert (streamed.status_code, sent < 9) == (413, True)
        bomb = await client.post(
            "/v1/tasks",
            content=gzip.compress(packed({"a": bytes(5 << 20)})),
            headers={"Content-Type": "application/gzip"},
        )
        assert (bomb.status_code, bomb.json()["limit"]) == (422, "total_bytes")
    await _assert_nothing(tenant)


def _with(state: ApiState, **config: Any) -> ApiState:
    return replace(state, config=replace(state.config, **config))


async def test_so_many_at_once(tenant: Tenant, state: ApiState) -> None:
    state.open_archives = state.config.max_archives
    answer = await _post(tenant, packed(TREE))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:workstead:problem:too_many_uploads"
    state.open_archives -= 1
    assert (await _post(tenant, packed(TREE))).status_code == 201


@pytest.mark.fault(123)
@pytest.mark.parametrize("type", [TAR, "application/gzip", "application/zip"])
async def test_an_archive_that_breaks_off_at_each_64_kb_is_invisible(
    tenant: Tenant, state: ApiState, type: str
) -> None:
    data = PACKED[type]()
    pieces = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    assert len(pieces) > 10
    app = app_of(state)
    for count in range(len(pieces)):
        said = await _broken_off(app, tenant, type, pieces[:count])
        assert said[0]["status"] == 422
        await _assert_nothing(tenant)
    assert (await _post(tenant, data, type)).status_code == 201


async def _broken_off(app: Any, tenant: Tenant, type: str, pieces: list[bytes]) -> list[Message]:
    """Send these pieces as the beginning of a body, and go away."""
    waiting: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    said: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        said.append(message)

    headers = {"content-type": type, **tenant.bearer}
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/v1/tasks",
        "raw_path": b"/v1/tasks", "root_path": "", "scheme": "http", "query_string": b"", "server": ("127.0.0.1", 8040),
        "client": ("127.0.0.1", 1), "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip
    await app(scope, receive, send)
    return said


@pytest.mark.fault(117)
@pytest.mark.parametrize("type", [TAR, "application/zip"])
@pytest.mark.parametrize(("owner", "call"), [(NewFile, "write"), (os, "fsync"), (os, "rename")])
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_full_disk_in_the_middle_leaves_nothing_torn(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, type: str, owner: Any, call: str, number: int
) -> None:
    real, calls = getattr(owner, call), 0

    def failing(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= number:
            raise OSError(errno.ENOSPC, "no space")
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, call, failing)
        answer = await _post(tenant, PACKED[type](), type)
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:workstead:problem:storage_full")
    assert (await tenant.get("/v1/tasks"))["data"] == []
    for path in _files(tenant):
        assert path.parent.name not in ("tmp", "uploads")
        assert path.read_bytes() in TREE.values()
    assert (await _post(tenant, PACKED[type](), type)).status_code == 201


def _full_file() -> BinaryIO:
    return Path("/dev/full").open("r+b", 0)


@pytest.mark.fault(117)
async def test_a_disk_that_is_full_while_a_zip_comes(
    tenant: Tenant, state: ApiState, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(state.blobs, "scratch", _full_file)
        answer = await _post(tenant, PACKED["application/zip"](), "application/zip")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:workstead:problem:storage_full")
    await _assert_nothing(tenant)


@pytest.mark.fault(123)
async def test_over_a_connection_whole_and_broken(tenant: Tenant, url: str) -> None:
    data = PACKED["application/gzip"]()
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {tenant.secret}\r\n"
        f"Content-Type: application/gzip\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    ).encode()
    for sent in (0, 1, 300_000, len(data) - 1):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + data[:sent])
        await _until(lambda: tenant.state.open_archives == 1)
        writer.close()
        await writer.wait_closed()
        await _until(lambda: tenant.state.open_archives == 0)
        await _assert_nothing(tenant)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head + data)
    assert (await reader.read(12)).endswith(b" 201")
    writer.close()
    await writer.wait_closed()


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it does not come to that")


async def test_the_documented_command_brings_the_documented_task(tenant: Tenant, url: str, tmp_path: Path) -> None:
    (command,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    write_tree(EXAMPLE, tmp_path / "invoice-check")
    program = await asyncio.create_subprocess_exec(
        *("sh", "-ec", command), cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TOKEN": tenant.secret, "URL": url},
    )  # fmt: skip
    said, trouble = await program.communicate()
    assert program.returncode == 0, trouble
    task = json.loads(said)
    assert (task["name"], task["manifest"]["price"]["rate_date"]) == ("invoices/check", "2026-05-01")
    assert [f["path"] for f in task["manifest"]["hidden"]] == [
        "answers.json",
        "client.md",
        "solution/output/answers.json",
    ]
