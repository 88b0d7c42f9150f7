"""What people write down about runs, and what is done to many runs at once."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_evaluations import RunNote


class AsyncRunNotes:
    """``/v1/runs/{id}/notes`` and ``/v1/run-notes``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self,
        run_id: str,
        body: str,
        *,
        tags: Sequence[str] = (),
        seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunNote:
        """Write a note; ``seq``: the event that it is about."""
        said: dict[str, Any] = {"body": body, "tags": [*tags], **({} if seq is None else {"seq": seq})}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return RunNote.model_validate(await self._http.json("POST", _path(run_id), json=said, headers=headers))

    async def of_run(self, run_id: str, *, limit: int | None = None) -> AsyncIterator[RunNote]:
        async for item in pages(self._http, _path(run_id), {}, limit):
            yield RunNote.model_validate(item)

    async def search(
        self, *, tag: str | None = None, text: str | None = None, limit: int | None = None
    ) -> AsyncIterator[RunNote]:
        """Yield the project's notes that have this tag, and this text in them."""
        query = {name: value for name, value in {"tag": tag, "text": text}.items() if value is not None}
        async for item in pages(self._http, "/v1/run-notes", query, limit):
            yield RunNote.model_validate(item)

    async def delete(self, run_id: str, note_id: str) -> None:
        await self._http.request("DELETE", _path(run_id, quote(note_id, safe="")))


class AsyncManyRuns:
    """``/v1/runs:invalidate``, ``:revalidate`` and ``:stop``. ``filter``: as in a regrade, and ``ids``; at least one member.

    Each answers {matched, runs, dry_run}: how many the filter lets through, and of how many it changes (or would) something.
    """

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def invalidate(self, filter: Mapping[str, Any], reason: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Take runs out of every table, visibly; say how many. Nothing is lost: ``revalidate`` brings the outcome back."""
        return await self._post("invalidate", {"filter": dict(filter), "reason": reason, "dry_run": dry_run})

    async def revalidate(self, filter: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        return await self._post("revalidate", {"filter": dict(filter), "dry_run": dry_run})

    async def stop(self, filter: Mapping[str, Any], mode: str = "collect", *, dry_run: bool = False) -> dict[str, Any]:
        """Stop runs: ``finish``, ``collect`` or ``discard``; say how many."""
        return await self._post("stop", {"filter": dict(filter), "mode": mode, "dry_run": dry_run})

    async def _post(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask again while the service has more of them than it does at once; ``runs`` are those of all answers."""
        runs = 0
        while True:
            headers = {"Idempotency-Key": str(uuid.uuid4())}
            found: dict[str, Any] = await self._http.json("POST", f"/v1/runs:{what}", json=body, headers=headers)
            runs += found.get("runs", 0)
            if not found.get("more"):
                return {**found, "runs": runs}


def _path(run_id: str, *rest: str) -> str:
    return "/".join(["/v1/runs", quote(run_id, safe=""), "notes", *rest])
