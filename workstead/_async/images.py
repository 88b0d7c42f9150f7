"""Environments and kits that a project brings."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.blobs import AsyncBlobs, create_with_blobs
from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.catalogue import BroughtImage


class AsyncImages:
    """``/v1/images``."""

    def __init__(self, http: AsyncTransport, blobs: AsyncBlobs) -> None:
        self._http = http
        self._blobs = blobs

    async def upload(self, name: str, archive: Path) -> BroughtImage:
        """Bring what ``docker save`` wrote; only what the server misses travels. Its import is ``operation_id``.

        Raises Conflict (``image_exists``), Problem, Disconnected, OSError.
        """
        with archive.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()

        async def create() -> BroughtImage:
            return await self._create({"name": name, "archive": sha256})

        return await create_with_blobs(self._blobs, {sha256: archive}, create)

    async def fetch(
        self, name: str, reference: str, *, username: str | None = None, secret: str | None = None
    ) -> BroughtImage:
        """Let the server fetch ``host/name@sha256:digest`` from a registry; the secret is forgotten afterwards.

        Raises Conflict (``image_exists``), Unavailable (no gateway yet), Problem.
        """
        login = {} if secret is None else {"username": username, "secret": secret}
        return await self._create({"name": name, "reference": reference, **login})

    async def get(self, image_id: str) -> BroughtImage:
        return BroughtImage.model_validate(await self._http.json("GET", _path(image_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[BroughtImage]:
        """Yield images; ``filters`` as the API has them (name, state)."""
        async for item in pages(self._http, "/v1/images", filters or {}, limit):
            yield BroughtImage.model_validate(item)

    async def delete(self, image_id: str) -> None:
        """Delete an image that no run needs any more. Raises Conflict (``image_in_use``)."""
        await self._http.request("DELETE", _path(image_id))

    async def _create(self, body: Mapping[str, Any]) -> BroughtImage:
        return BroughtImage.model_validate(await self._http.json("POST", "/v1/images", json=dict(body)))


def _path(image_id: str) -> str:
    return f"/v1/images/{quote(image_id, safe='')}"
