"""Grading plans: named, versioned choices of methods, judges and votes."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_grading import GradingPlan


class AsyncGradingPlans:
    """``/v1/grading-plans``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, name: str, spec: Mapping[str, Any]) -> GradingPlan:
        """Make the plan's next version; the newest one where that says the same already. Raises Invalid, Problem."""
        body = {"name": name, "spec": dict(spec)}
        return GradingPlan.model_validate(await self._http.json("POST", "/v1/grading-plans", json=body))

    async def get(self, plan: str) -> GradingPlan:
        """Return ``name@version``, or the newest version of ``name``. Raises NotFound."""
        return GradingPlan.model_validate(await self._http.json("GET", f"/v1/grading-plans/{quote(plan, safe='@/')}"))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[GradingPlan]:
        """Yield every version, newest first; ``filters``: name, author, sort."""
        async for item in pages(self._http, "/v1/grading-plans", filters or {}, limit):
            yield GradingPlan.model_validate(item)
