"""Benchmarks: brought from here to the server, only with what it misses; looked at; checked."""

import hashlib
import json
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from workstead._async.blobs import MAX_ROUNDS, AsyncBlobs
from workstead._async.http import AsyncTransport, parse_json
from workstead._async.operations import AsyncOperations
from workstead._async.pages import pages
from workstead.errors import Conflict, Invalid, NotFound, problem_of
from workstead.models import Benchmark, BenchmarkItem, Operation
from workstead.models_annotations import Derivation
from workstead.models_benchmarks import BenchmarkCard, Embeddings

IMPORT_WAIT_S = 10.0
OnProgress = Callable[[int, int], None]
"""Called with (done, all) of files and items together; may be called from another thread."""


class AsyncBenchmarks:
    """``/v1/benchmarks``: immutable sets of tasks, ``name@version``; the same content again finds what is there."""

    def __init__(self, http: AsyncTransport, blobs: AsyncBlobs, operations: AsyncOperations) -> None:
        self._http, self._blobs, self._operations = http, blobs, operations

    async def create(
        self, manifest: Mapping[str, Any], files: Mapping[str, Path], *, on_progress: OnProgress | None = None
    ) -> Benchmark:
        """Make a benchmark; uploads what the server misses of ``files`` (sha256 → path) and of the manifest.

        Goes on where an earlier call was broken off. Raises Invalid (``missing_blobs`` for a digest that neither side
        has), Conflict (``benchmark_version_taken``; ``import_cancelled``), Problem, Disconnected, OSError.
        """
        body = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        sha256 = hashlib.sha256(body).hexdigest()
        sources: dict[str, Path | bytes] = {**files, sha256: body}
        counter = _Counter(on_progress, len(manifest.get("items", ())))
        wanted = {sha256, *_digests(manifest)}
        for left in reversed(range(MAX_ROUNDS)):
            missing = await self._blobs.missing(wanted)
            await self._upload(sorted(missing & set(sources)), sources, counter)
            try:
                return await self._import(sha256, counter)
            except Invalid as problem:
                named: Iterable[str] = problem.fields.get("missing") or ()
                if problem.type != "missing_blobs" or not left or any(sha not in sources for sha in named):
                    raise
        raise AssertionError("the last round returns or raises")

    async def _upload(self, missing: list[str], sources: Mapping[str, Path | bytes], counter: "_Counter") -> None:
        counter.expect(len(missing))
        await self._blobs.upload_all({sha256: sources[sha256] for sha256 in missing}, counter.brought)

    async def _import(self, sha256: str, counter: "_Counter") -> Benchmark:
        # The same manifest twice is one benchmark; the key only tells the transport that repeating it is safe.
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        response = await self._http.request(
            "POST", "/v1/benchmarks", json={"manifest_sha256": sha256}, headers=headers, wait_s=IMPORT_WAIT_S
        )
        if response.status_code == 202:
            started = Operation.model_validate(parse_json(response))
            return await self.get(_made(await self._operations.wait(started.id, counter.seen)))
        counter.all()
        return Benchmark.model_validate(parse_json(response))

    async def get(self, benchmark_id: str) -> Benchmark:
        """Raises NotFound, Problem."""
        return Benchmark.model_validate(await self._http.json("GET", _path(benchmark_id)))

    async def find(self, ref: str) -> Benchmark:
        """Return the benchmark with this id, ``name@version``, or the newest of this name. Raises NotFound, Problem."""
        name, _, version = ref.partition("@")
        filters = {"name": name, "version": version} if version else {"name": name}
        async for benchmark in self.list(filters, limit=1):
            return benchmark
        if not ref.startswith("bench_"):
            raise NotFound(404, "not_found", f"no benchmark is called {ref!r}")
        return await self.get(ref)

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Benchmark]:
        """Yield benchmarks, newest first, at most ``limit``; ``filters``: name, version, label.<name>."""
        async for item in pages(self._http, "/v1/benchmarks", filters or {}, limit):
            yield Benchmark.model_validate(item)

    async def items(
        self, benchmark_id: str, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[BenchmarkItem]:
        """Yield items in their order; ``filters``: status, item (pattern of keys), check, facet.<name>."""
        async for item in pages(self._http, _path(benchmark_id, "items"), filters or {}, limit):
            yield BenchmarkItem.model_validate(item)

    async def card(self, benchmark_id: str) -> BenchmarkCard:
        """Return what a benchmark is made of: counts, facets, file formats, prices, human time. Raises NotFound, Problem."""
        return BenchmarkCard.model_validate(await self._http.json("GET", _path(benchmark_id, "card")))

    async def derive(
        self,
        benchmark_id: str,
        name: str,
        version: str,
        rule: Mapping[str, Any],
        *,
        policies: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Derivation:
        """Make a benchmark of the items that a rule chooses, or only count them: include, exclude, facets, price, sample, seed.

        ``policies``: in place of the parent's. Raises Invalid (``no_items``), Conflict (``benchmark_version_taken``),
        NotFound, Problem.
        """
        body: dict[str, Any] = {
            "name": name, "version": version, "rule": dict(rule), "labels": dict(labels or {}), "dry_run": dry_run,
        }  # fmt: skip
        if policies is not None:
            body["policies"] = dict(policies)
        return Derivation.model_validate(await self._http.json("POST", _path(benchmark_id, "derive"), json=body))

    async def embed(self, benchmark_id: str, model: str, *, dimensions: int = 256) -> Operation:
        """Begin to have vectors made of the texts of tasks that have none of this kind; 0 dimensions: the model's own.

        Raises Invalid (``model_not_found``), NotFound, Problem.
        """
        body, headers = {"model": model, "dimensions": dimensions}, {"Idempotency-Key": str(uuid.uuid4())}
        found = await self._http.json("POST", _path(benchmark_id, "embeddings"), json=body, headers=headers)
        return Operation.model_validate(found)

    async def embeddings(self, benchmark_id: str) -> Sequence[Embeddings]:
        """Return which vectors its tasks have. Raises NotFound, Problem."""
        found = await self._http.json("GET", _path(benchmark_id, "embeddings"))
        return [Embeddings.model_validate(one) for one in found["data"]]

    async def set_checks(self, benchmark_id: str, checks: Mapping[str, Mapping[str, Any]]) -> Benchmark:
        """Keep what a check found: key → ``{state: ok|suspect|broken, oracle, nop, reasons, runs}``, ≤ 5 000 at once.

        Raises Invalid (``unknown_items``), NotFound, Problem.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"items": {key: dict(check) for key, check in checks.items()}}
        answer = await self._http.json("POST", _path(benchmark_id, "checks"), json=body, headers=headers)
        return Benchmark.model_validate(answer)

    async def set_labels(self, benchmark_id: str, labels: Mapping[str, str]) -> Benchmark:
        """Replace the labels."""
        body = {"labels": dict(labels)}
        return Benchmark.model_validate(await self._http.json("PATCH", _path(benchmark_id), json=body))

    async def delete(self, benchmark_id: str) -> None:
        """Forget a benchmark; its tasks and their runs stay. Raises Conflict while runs of it are not done."""
        await self._http.request("DELETE", _path(benchmark_id))


class _Counter:
    """Files that travelled and items that were made, as one number."""

    def __init__(self, on_progress: OnProgress | None, items: int) -> None:
        self._on_progress = on_progress
        self._items, self._items_done = items, 0
        self._files, self._files_done = 0, 0
        self._lock = threading.Lock()  # the generated client uploads in threads

    def expect(self, files: int) -> None:
        self._files = self._files_done + files
        self._tell()

    def brought(self, files: int) -> None:
        with self._lock:
            self._files_done += files
        self._tell()

    def seen(self, operation: Operation) -> None:
        self._items_done = min(operation.done, self._items)
        self._tell()

    def all(self) -> None:
        self._items_done = self._items
        self._tell()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._files_done + self._items_done, self._files + self._items)


def _made(operation: Operation) -> str:
    """Return the benchmark's id. Raises the operation's problem."""
    if operation.problem is not None:
        raise problem_of(int(operation.problem.get("status", 500)), operation.problem)
    if operation.result is None:
        raise Conflict(409, "import_cancelled", f"the import {operation.id} ended as {operation.state}")
    return str(operation.result["benchmark_id"])


def _digests(manifest: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for item in cast("list[dict[str, Any]]", manifest.get("items", [])):
        task = cast("dict[str, Any]", item.get("task") or {})
        found.update(str(f["sha256"]) for name in ("visible", "hidden") for f in task.get(name) or ())
    return found


def _path(benchmark_id: str, *rest: str) -> str:
    return "/".join(["/v1/benchmarks", quote(benchmark_id, safe=""), *rest])
