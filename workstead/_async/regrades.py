"""Regrades: a plan over many runs' deliverables, with an estimate first and a sample on request."""

import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_grading import WAITING, Regrade


class AsyncRegrades:
    """``/v1/regrades``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(
        self,
        plan: str,
        *,
        filter: Mapping[str, Any] | None = None,
        runs: Sequence[str] | None = None,
        sample: Mapping[str, Any] | None = None,
        primary: bool = False,
        round: int = 1,
        idempotency_key: str | None = None,
    ) -> Regrade:
        """Fix which runs are meant, by ``filter`` or ``runs``, and estimate; nothing is graded yet.

        ``sample``: {n, stratify, seed}. Raises Conflict (these were graded so), Invalid (plan and tasks do not fit), NotFound.
        """
        said = {"plan": plan, "filter": filter, "runs": runs, "sample": sample}
        body = {name: value for name, value in said.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body |= {"primary": primary, "round": round}
        return Regrade.model_validate(await self._http.json("POST", "/v1/regrades", json=body, headers=headers))

    async def get(self, regrade_id: str) -> Regrade:
        return Regrade.model_validate(await self._http.json("GET", _path(regrade_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Regrade]:
        """Yield regrades without their progress, newest first; ``filters``: plan, state, sort."""
        async for item in pages(self._http, "/v1/regrades", filters or {}, limit):
            yield Regrade.model_validate(item)

    async def start(self, regrade_id: str, scope: str = "all") -> Regrade:
        """Let the ``sample`` be graded, or ``all``. May be repeated. Raises Conflict."""
        path = _path(regrade_id, "start")
        return Regrade.model_validate(await self._http.json("POST", path, json={"scope": scope}))

    async def cancel(self, regrade_id: str) -> Regrade:
        """End it; the runs' verdicts stay. May be repeated. Raises Conflict (it is done)."""
        return Regrade.model_validate(await self._http.json("POST", _path(regrade_id, "cancel")))

    async def wait(self, regrade_id: str, on_change: Callable[[Regrade], None] | None = None) -> Regrade:
        """Return the regrade once sample or all are graded, or it was cancelled; ``on_change`` sees what comes before."""
        tried = 0
        while (regrade := await self.get(regrade_id)).state in WAITING:
            if on_change is not None:
                on_change(regrade)
            await self._http.pause(tried)
            tried += 1
        return regrade


def _path(regrade_id: str, *rest: str) -> str:
    return "/".join(["/v1/regrades", quote(regrade_id, safe=""), *rest])
