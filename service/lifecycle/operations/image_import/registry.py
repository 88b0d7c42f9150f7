"""An image from a registry, by digest: fetched through the gateway, which alone has the secret; no engine pulls."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from service.archives.image_archives import MAX_DOCUMENT_BYTES, chosen, parsed, parts_of_manifest
from service.domain.errors import Conflict, Invalid, Unavailable
from service.domain.images import MAX_IMAGE_BYTES, MAX_LAYERS, Reference
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.image_import.gathered import Gathered, Progress
from service.lifecycle.own_side import OwnWay
from service.store.rows_models import ImageRow
from service.store.staging import StagedFile, Staging

STALLED_S = 120.0
_PIECE = 1 << 20
_DETAIL = 1000


async def fetch(ctx: OperationContext, staging: Staging, row: ImageRow, progress: Progress) -> Gathered:
    """Raises Invalid (registry_denied, registry_unknown, image_…), JobCancelled, Unavailable."""
    if ctx.gateway is None or row.reference is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    registry = _Registry(ctx.gateway, row.id, staging, progress)
    manifest = await registry.document(Reference.of(row.reference).digest)
    if "manifests" in manifest:
        manifest = await registry.document(chosen(manifest))
    config, layers = parts_of_manifest(manifest)
    if len(layers) > MAX_LAYERS:
        raise Invalid("image_too_large", f"over {MAX_LAYERS} layers")
    return Gathered(await registry.blob(config), [await registry.blob(one) for one in layers])


class _Registry:
    """One image's registry, seen through the gateway."""

    def __init__(self, way: OwnWay, image_id: str, staging: Staging, progress: Progress) -> None:
        self._way, self._image_id = way, image_id
        self._staging, self._progress = staging, progress
        self._left = MAX_IMAGE_BYTES

    async def document(self, digest: str) -> dict[str, object]:
        data = b""
        async with self._asked(f"manifests/{digest}") as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > MAX_DOCUMENT_BYTES:
                    raise Invalid("image_malformed", f"its manifest is over {MAX_DOCUMENT_BYTES} bytes")
        if hashlib.sha256(data).hexdigest() != digest:
            raise Invalid("image_digest_mismatch", "the registry gave another manifest than the one asked for")
        return parsed(data, dict)

    async def blob(self, digest: str) -> StagedFile:
        """Stage a blob; what comes must have the digest."""
        await asyncio.to_thread(self._staging.begin)
        try:
            await self._copy(digest)
        finally:
            file = await asyncio.to_thread(self._staging.end)
        if file.sha256 != digest:
            raise Invalid("image_digest_mismatch", "the registry gave another blob than the one asked for")
        return file

    async def _copy(self, digest: str) -> None:
        async with self._asked(f"blobs/{digest}") as pieces:
            async for piece in pieces:
                self._left -= len(piece)
                if self._left < 0:
                    raise Invalid("image_too_large", f"over {MAX_IMAGE_BYTES} bytes")
                await asyncio.to_thread(self._staging.write, piece)
                await self._progress.read(len(piece))

    @asynccontextmanager
    async def _asked(self, path: str) -> AsyncGenerator[AsyncGenerator[bytes]]:
        headers = {"authorization": f"Bearer {await asyncio.to_thread(self._way.token)}"}
        try:
            async with (
                self._way.client(STALLED_S) as client,
                client.stream("GET", f"/images/{self._image_id}/{path}", headers=headers) as answer,
            ):
                if answer.status_code != 200:
                    raise await _refused(answer)
                yield _pieces(answer)
        except (httpx.TransportError, OSError) as error:
            raise Unavailable(
                "registry_unavailable", f"the registry does not answer: {type(error).__name__}"
            ) from error


async def _pieces(answer: httpx.Response) -> AsyncGenerator[bytes]:
    async for piece in answer.aiter_bytes(_PIECE):
        yield piece


async def _refused(answer: httpx.Response) -> Exception:
    """Return what a refusal of the gateway means; its type is in a header."""
    kind = answer.headers.get("x-workstead-problem", "registry_unavailable")
    detail = (await _start(answer))[:_DETAIL].decode(errors="replace")
    if kind in ("registry_denied", "registry_unknown", "registry_refused"):
        return Invalid(kind, detail)
    return Conflict(kind, detail) if kind == "image_deleted" else Unavailable(kind, detail)


async def _start(answer: httpx.Response) -> bytes:
    data = b""
    async for piece in answer.aiter_bytes(_DETAIL):
        data += piece
        if len(data) >= _DETAIL:
            break
    return data
