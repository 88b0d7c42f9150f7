"""Publications: exports at an address that stays."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_publications import Publication

_PATH = "/v1/publications"


class AsyncPublications:
    """``/v1/publications``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, export: str, name: str, *, public: bool = False) -> Publication:
        """Publish what the operation ``export`` made; the same again returns what is there.

        Raises NotFound, Conflict ``export_not_ready``, ``export_not_public``.
        """
        body = {"export": export, "name": name, "public": public}
        return Publication.model_validate(await self._http.json("POST", _PATH, json=body))

    async def get(self, publication_id: str) -> Publication:
        return Publication.model_validate(await self._http.json("GET", _one(publication_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Publication]:
        """Yield publications, newest first; ``filters``: name."""
        async for item in pages(self._http, _PATH, filters or {}, limit):
            yield Publication.model_validate(item)

    async def open(self, publication_id: str, *, public: bool = True) -> Publication:
        """Let anybody who has the address read it, or nobody else any more. Raises Conflict ``export_not_public``."""
        return Publication.model_validate(await self._http.json("PATCH", _one(publication_id), json={"public": public}))

    async def withdraw(self, publication_id: str, agent: str, reason: str) -> Publication:
        """Take an agent's figures out of what is shown. Raises Invalid ``unknown_agent``, Conflict ``withdrawn_already``."""
        body = {"agent": agent, "reason": reason}
        return Publication.model_validate(
            await self._http.json("POST", f"{_one(publication_id)}/withdrawals", json=body)
        )

    async def report(self, publication_id: str) -> dict[str, Any]:
        """Return the report as it is shown (``api_schema``: Report)."""
        return await self._http.json("GET", f"{_one(publication_id)}/report")

    async def download(self, publication_id: str, target: Path) -> int:
        """Write the zip that was published to the new file ``target``; return its bytes. Raises NotFound, OSError."""
        return await download(self._http, f"{_one(publication_id)}/archive.zip", target)


def _one(publication_id: str) -> str:
    return f"{_PATH}/{quote(publication_id, safe='')}"
