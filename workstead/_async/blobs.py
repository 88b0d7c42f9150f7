"""Content by digest: only what the server misses travels, and an interrupted upload goes on where it stopped."""

import io
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from workstead._async.http import AsyncTransport
from workstead.concurrency import each_async
from workstead.errors import Conflict, Disconnected, Invalid, NotFound, TooLarge, Unavailable

CHUNK_BYTES = 1 << 20
MAX_ROUNDS = 8
ASKED_AT_ONCE = 5_000
UPLOADS_AT_ONCE = 8
SMALL_BYTES = 64 << 10
"""Up to this size blobs share a request."""
BATCH_BYTES = 1 << 20
BATCH_BLOBS = 500


class AsyncBlobs:
    """``/v1/blobs/{sha256}``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def offset(self, sha256: str) -> int | None:
        """Return how many bytes the server has of an unfinished upload; None if it has the whole blob."""
        try:
            response = await self._http.request("HEAD", f"/v1/blobs/{sha256}")
        except NotFound:
            return 0
        offset = response.headers.get("Upload-Offset")
        complete = response.headers.get("Upload-Complete", "?1") == "?1" and response.status_code == 200
        return None if complete else int(offset or 0)

    async def missing(self, digests: Iterable[str]) -> set[str]:
        """Return those that are to be uploaded. Raises Problem, Disconnected."""
        wanted, found = sorted(set(digests)), set[str]()
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            body = {"digests": wanted[start : start + ASKED_AT_ONCE]}
            # Asking twice does no harm; the key only says so to the transport.
            headers = {"Idempotency-Key": str(uuid.uuid4())}
            found.update((await self._http.json("POST", "/v1/blobs:missing", json=body, headers=headers))["missing"])
        return found

    async def upload(self, source: Path | bytes, sha256: str, *, known_missing: bool = False) -> bool:
        """Bring a file's bytes to the server; return whether any had to travel. Raises Problem, Disconnected, OSError.

        With ``known_missing`` nobody asks first whether a part of it is there already.
        """
        size, tried, before = _size(source), 0, -1
        if known_missing and await self._put(source, sha256, size, 0):
            return True
        while (offset := await self.offset(sha256)) is not None:
            tried = 0 if offset > before else tried + 1
            if tried > self._http.retries:
                raise Disconnected(f"the upload of {sha256} makes no progress after {offset} of {size} bytes")
            before = offset
            if await self._put(source, sha256, size, offset):
                return True
            await self._http.pause(tried)
        return before >= 0

    async def upload_all(
        self, sources: Mapping[str, Path | bytes], on_blob: Callable[[int], None] | None = None
    ) -> None:
        """Bring many blobs that the server misses: some at once, small ones many in one request.

        ``on_blob`` is called with the number of blobs that a finished request brought, maybe from another thread.
        Raises Problem, Disconnected, OSError.
        """

        async def bring(batch: Sequence[str]) -> None:
            await self._bring(batch, sources)
            if on_blob is not None:
                on_blob(len(batch))

        await each_async(batches({sha: _size(source) for sha, source in sources.items()}), bring, UPLOADS_AT_ONCE)

    async def _bring(self, batch: Sequence[str], sources: Mapping[str, Path | bytes]) -> None:
        if len(batch) > 1:
            body = b"".join(_framed(sha, _content(sources[sha])) for sha in batch)
            headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": str(uuid.uuid4())}
            try:
                await self._http.request("POST", "/v1/blobs:batch", content=body, headers=headers)
                return
            except (NotFound, TooLarge):
                pass  # a server that takes no batches, or smaller ones
        for sha in batch:
            await self.upload(sources[sha], sha, known_missing=True)

    async def _put(self, source: Path | bytes, sha256: str, size: int, offset: int) -> bool:
        headers = {"Upload-Offset": str(offset), "Content-Length": str(size - offset)}
        headers["Content-Type"] = "application/octet-stream"
        try:
            response = await self._http.send_bytes(f"/v1/blobs/{sha256}", _chunks(source, offset), headers)
        except (httpx.TransportError, Conflict, Unavailable):
            return False
        return response.status_code == 201  # 204: the server saw the body end early


def batches(sizes: Mapping[str, int]) -> list[list[str]]:
    """Return the blobs of ``sizes`` (in bytes) so that small ones share a request, and large ones come first."""
    found = [[sha] for sha, size in sizes.items() if size > SMALL_BYTES]
    batch: list[str] = []
    room = BATCH_BYTES
    for sha in (sha for sha, size in sizes.items() if size <= SMALL_BYTES):
        if batch and (len(batch) == BATCH_BLOBS or room < sizes[sha]):
            found.append(batch)
            batch, room = [], BATCH_BYTES
        batch.append(sha)
        room -= sizes[sha]
    return [*found, batch] if batch else found


def _framed(sha256: str, data: bytes) -> bytes:
    return f"{sha256} {len(data)}\n".encode() + data


def _content(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _size(source: Path | bytes) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size


async def _chunks(source: Path | bytes, offset: int) -> AsyncIterator[bytes]:
    with _opened(source) as file:
        file.seek(offset)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


async def create_with_blobs(blobs: AsyncBlobs, files: Mapping[str, Path], create: Callable[[], Awaitable[Any]]) -> Any:
    """Call ``create``; where the server names missing blobs, upload exactly those and call it again.

    Raises what ``create`` raises, also ``Invalid("missing_blobs")`` for a digest that ``files`` does not have.
    """
    for _ in range(MAX_ROUNDS):
        try:
            return await create()
        except Invalid as problem:
            missing = problem.fields.get("missing")
            if problem.type != "missing_blobs" or not missing or any(sha not in files for sha in missing):
                raise
        for sha in missing:
            await blobs.upload(files[sha], sha)
    return await create()
