"""From a manifest to a benchmark, within the request where it is small, else by an operation that the request waits for."""

import asyncio
import json
from typing import Any

from starlette.responses import Response

from service.api.auth import Caller
from service.api.benchmark_view import benchmark_view
from service.api.conditional import revision_tag
from service.api.operation_view import operation_view
from service.api.operation_waiting import wait_for_operation
from service.api.problems import problem
from service.api.rendering import answer
from service.api.state import ApiState
from service.domain.errors import Invalid
from service.domain.operations import OperationState
from service.lifecycle import benchmark_making as making
from service.lifecycle.operations.benchmark_import import KIND
from service.store import benchmarks, blob_refs, operations
from service.store.database import Tx
from service.store.operations import OWNER
from service.store.rows import BenchmarkRow, OperationRow

PATIENCE_S = 2.0
"""What takes longer is answered by its operation."""


async def import_manifest(state: ApiState, caller: Caller, manifest: Any) -> Response:
    """Make the benchmark of a manifest that came with the request. Raises Invalid, Conflict."""
    brought = await asyncio.to_thread(making.read, manifest)
    if len(brought.entries) <= making.BATCH:
        async with state.db.transaction() as tx:
            row, created = await making.make_at_once(tx, caller.project_id, brought)
            counts = await benchmarks.counts(tx, [row.id])
        return _made(row, counts[row.id], created=created)
    data = json.dumps(manifest, ensure_ascii=False, separators=(",", ":")).encode()
    sha256, size = await asyncio.to_thread(state.blobs.store_bytes, data)
    return await _by_operation(state, caller, sha256, size)


async def import_uploaded(state: ApiState, caller: Caller, sha256: str) -> Response:
    """Make the benchmark of a manifest that was uploaded. Raises Invalid ("missing_blobs" names the manifest itself)."""
    async with state.db.reading() as tx:
        sizes = await blob_refs.project_sizes(tx, caller.project_id, [sha256])
    if sha256 not in sizes:
        raise Invalid("missing_blobs", "the manifest is not uploaded", missing=[sha256])
    return await _by_operation(state, caller, sha256, sizes[sha256])


async def _by_operation(state: ApiState, caller: Caller, sha256: str, size: int) -> Response:
    async with state.db.transaction() as tx:
        row = await _find_or_queue(tx, caller.project_id, sha256, size)
    known = row.state is OperationState.SUCCEEDED
    row = await wait_for_operation(state, caller, row, "ended", PATIENCE_S)
    if row.state is OperationState.SUCCEEDED and row.result is not None:
        found = await _benchmark(state, caller, str(row.result["benchmark_id"]))
        if found is not None:
            return _made(*found, created=bool(row.result["created"]) and not known)
    if row.state is OperationState.FAILED and row.problem is not None:
        return problem(row.problem["status"], row.problem["type"], row.problem["detail"], **row.problem["fields"])
    return answer(operation_view(row), 202, {"Location": f"/v1/operations/{row.id}"})


async def _find_or_queue(tx: Tx, project_id: str, sha256: str, size: int) -> OperationRow:
    spec = {"manifest_sha256": sha256}
    found = await operations.find_open_or_done(tx, project_id, KIND, spec)
    if found is not None and await _is_good(tx, project_id, found):
        return found
    row = await operations.create(tx, project_id, KIND, spec)
    await blob_refs.add_refs(tx, project_id, OWNER, row.id, [(sha256, size)])
    return row


async def _is_good(tx: Tx, project_id: str, found: OperationRow) -> bool:
    """Tell whether the operation will answer: the benchmark that it once made may have been deleted since."""
    if found.state is not OperationState.SUCCEEDED or found.result is None:
        return True
    return await benchmarks.get(tx, project_id, str(found.result["benchmark_id"])) is not None


async def _benchmark(state: ApiState, caller: Caller, benchmark_id: str) -> tuple[BenchmarkRow, dict[str, int]] | None:
    async with state.db.reading() as tx:
        row = await benchmarks.get(tx, caller.project_id, benchmark_id)
        counts = {} if row is None else await benchmarks.counts(tx, [row.id])
    return None if row is None else (row, counts[row.id])


def _made(row: BenchmarkRow, counts: dict[str, int], *, created: bool) -> Response:
    headers = {"Location": f"/v1/benchmarks/{row.id}", "ETag": revision_tag(row.revision)}
    return answer(benchmark_view(row, counts), 201 if created else 200, headers)
