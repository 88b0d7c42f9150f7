"""A benchmark brought to the server: only what it misses travels, in few requests, over whatever breaks."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.fake_api import Script, client, problem, sync_client
from workstead._async.blobs import BATCH_BLOBS, SMALL_BYTES, batches
from workstead.concurrency import each, each_async
from workstead.errors import Conflict, Invalid, NotFound, ServerError

CONTENTS = [b"one", b"two"]
DIGESTS = [hashlib.sha256(data).hexdigest() for data in CONTENTS]
BENCHMARK = {"id": "bench_1", "name": "set", "version": "1", "counts": {"items": 2, "ok": 2}}
MANIFEST: dict[str, Any] = {
    "name": "set",
    "items": [
        {"key": "a", "task": {"visible": [{"sha256": DIGESTS[0]}], "hidden": [{"sha256": DIGESTS[1]}]}},
        {"key": "b", "task": None},
    ],
}
SHA = hashlib.sha256(json.dumps(MANIFEST, separators=(",", ":")).encode()).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for sha, data in zip(DIGESTS, CONTENTS, strict=True):
        found[sha] = tmp_path / sha
        found[sha].write_bytes(data)
    return found


def missing(*digests: str) -> httpx.Response:
    return httpx.Response(200, json={"missing": list(digests)})


def operation(state: str, **more: Any) -> httpx.Response:
    ended = None if state in ("queued", "running") else "2026-11-01T12:00:00.000Z"
    body = {"id": "op_1", "kind": "benchmark_import", "state": state, "revision": 3, "ended_at": ended, **more}
    return httpx.Response(202 if state == "queued" else 200, json=body)


def stored() -> httpx.Response:
    return httpx.Response(201, json={"data": []})


async def test_only_what_is_missing_travels_and_progress_is_told(files: dict[str, Path]) -> None:
    script = Script(missing(DIGESTS[1], SHA), stored(), httpx.Response(201, json=BENCHMARK))
    told: list[tuple[int, int]] = []
    async with client(script) as api:
        made = await api.benchmarks.create(MANIFEST, files, on_progress=lambda done, total: told.append((done, total)))
    assert (made.id, made.counts["ok"]) == ("bench_1", 2)
    assert [r.url.path for r in script.requests] == ["/v1/blobs:missing", "/v1/blobs:batch", "/v1/benchmarks"]
    assert sorted(json.loads(script.bodies[0])["digests"]) == sorted([*DIGESTS, SHA])
    assert b"two" in script.bodies[1]
    assert b"one" not in script.bodies[1]
    assert json.loads(script.bodies[2]) == {"manifest_sha256": SHA}
    assert told == [(0, 4), (2, 4), (4, 4)]


async def test_nothing_travels_twice(files: dict[str, Path]) -> None:
    script = Script(missing(), httpx.Response(200, json=BENCHMARK))
    async with client(script) as api:
        await api.benchmarks.create(MANIFEST, files)
    assert script.left == 0


def test_the_generated_client_does_the_same(files: dict[str, Path]) -> None:
    script = Script(missing(*DIGESTS, SHA), stored(), operation("queued"), operation("running", done=1),
                    operation("succeeded", result={"benchmark_id": "bench_1"}), httpx.Response(200, json=BENCHMARK))  # fmt: skip
    with sync_client(script) as api:
        assert api.benchmarks.create(MANIFEST, files).id == "bench_1"
    assert script.requests[-1].url.path == "/v1/benchmarks/bench_1"
    assert script.requests[-2].headers["If-None-Match"] == '"3"'
    assert script.requests[-2].url.params["until"] == "change"


async def test_a_server_that_takes_no_batches_gets_them_one_by_one(files: dict[str, Path]) -> None:
    script = Script(
        missing(*DIGESTS), problem(413, "body_too_large"), stored(), stored(), httpx.Response(200, json=BENCHMARK)
    )
    async with client(script) as api:
        await api.benchmarks.create(MANIFEST, files)
    assert [r.method for r in script.requests] == ["POST", "POST", "PUT", "PUT", "POST"]


async def test_what_went_missing_meanwhile_is_sent_again(files: dict[str, Path]) -> None:
    gone = problem(422, "missing_blobs", missing=[DIGESTS[0]])
    script = Script(missing(), gone, missing(DIGESTS[0]), stored(), httpx.Response(200, json=BENCHMARK))
    async with client(script) as api:
        await api.benchmarks.create(MANIFEST, files)
    assert script.bodies[3] == b"one"


async def test_a_file_that_nobody_has_is_an_error(files: dict[str, Path]) -> None:
    script = Script(missing(*DIGESTS), stored(), problem(422, "missing_blobs", missing=[DIGESTS[1]]))
    async with client(script) as api:
        with pytest.raises(Invalid):
            await api.benchmarks.create(MANIFEST, {DIGESTS[0]: files[DIGESTS[0]]})
    assert script.bodies[1] == b"one"


@pytest.mark.parametrize(
    ("ended", "error", "type_"),
    [
        ({"state": "failed", "problem": {"type": "urn:workstead:problem:benchmark_version_taken", "status": 409}},
         Conflict, "benchmark_version_taken"),
        ({"state": "failed", "problem": {"type": "urn:workstead:problem:internal_error", "status": 500}},
         ServerError, "internal_error"),
        ({"state": "cancelled"}, Conflict, "import_cancelled"),
    ],
)  # fmt: skip
async def test_a_failed_operation_raises_its_problem(
    files: dict[str, Path], ended: dict[str, Any], error: type[Exception], type_: str
) -> None:
    script = Script(missing(), operation("queued"), operation(**ended))
    async with client(script) as api:
        with pytest.raises(error) as caught:
            await api.benchmarks.create(MANIFEST, files)
    assert getattr(caught.value, "type", "") == type_


async def test_finding_by_name_version_or_id() -> None:
    page = httpx.Response(200, json={"data": [BENCHMARK], "next": None})
    none = httpx.Response(200, json={"data": [], "next": None})
    script = Script(page, page, none, httpx.Response(200, json=BENCHMARK), none)
    async with client(script) as api:
        assert (await api.benchmarks.find("set")).id == "bench_1"
        assert (await api.benchmarks.find("set@1")).id == "bench_1"
        assert (await api.benchmarks.find("bench_1")).id == "bench_1"
        with pytest.raises(NotFound):
            await api.benchmarks.find("nobody's")
    assert dict(script.requests[1].url.params) == {"name": "set", "version": "1", "limit": "1"}


async def test_waiting_for_an_operation_sees_each_change() -> None:
    script = Script(operation("running", done=1), httpx.Response(304), operation("running", done=1),
                    operation("running", done=2), operation("succeeded"))  # fmt: skip
    seen: list[int] = []
    async with client(script) as api:
        ended = await api.operations.wait("op_1", lambda operation: seen.append(operation.done))
    assert (ended.state, seen) == ("succeeded", [1, 1, 2])


def test_small_blobs_share_requests() -> None:
    sizes = {"big": SMALL_BYTES + 1, **{f"s{n}": 10 for n in range(BATCH_BLOBS + 1)}, "edge": SMALL_BYTES}
    found = batches(sizes)
    assert found[0] == ["big"]
    assert [len(batch) for batch in found] == [1, BATCH_BLOBS, 2]
    assert sorted(sha for batch in found for sha in batch) == sorted(sizes)
    assert [len(b) for b in batches({f"m{n}": SMALL_BYTES for n in range(17)})] == [16, 1]
    assert batches({}) == []


async def test_the_first_error_ends_all_of_it() -> None:
    done: list[int] = []

    async def work(n: int) -> None:
        if n == 3:
            raise ZeroDivisionError
        done.append(n)

    with pytest.raises(ZeroDivisionError):
        await each_async(range(100), work, 1)
    assert done == [0, 1, 2]
    lock, threads = threading.Lock(), set[str]()

    def thread_work(n: int) -> None:
        with lock:
            threads.add(threading.current_thread().name)
        if n == 50:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        each(range(100), thread_work, 4)
    assert len(threads) <= 4
    each([], thread_work, 4)
    await each_async([], work, 4)
