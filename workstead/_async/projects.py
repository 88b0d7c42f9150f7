"""Projects: whose things are whose. For operators."""

import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Project


class AsyncProjects:
    """``/v1/projects``; needs an operator's token."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, name: str, *, untrusted: bool = False, max_runs: int | None = None) -> Project:
        """Make a project; its first token is minted on the server. Raises Conflict (the name is taken), Invalid."""
        body = {"name": name, "untrusted": untrusted, "max_runs": max_runs}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return Project.model_validate(await self._http.json("POST", "/v1/projects", json=body, headers=headers))

    async def get(self, project_id: str) -> Project:
        return Project.model_validate(await self._http.json("GET", _path(project_id)))

    async def list(self, *, limit: int | None = None) -> AsyncIterator[Project]:
        """Yield projects, newest first."""
        async for item in pages(self._http, "/v1/projects", {}, limit):
            yield Project.model_validate(item)

    async def change(self, project_id: str, **changes: Any) -> Project:
        """Set ``max_runs`` (live at once; None takes the limit away) or ``untrusted``; what is left out stays."""
        return Project.model_validate(await self._http.json("PATCH", _path(project_id), json=changes))


def _path(project_id: str) -> str:
    return f"/v1/projects/{quote(project_id, safe='')}"
