"""Forecasts: what models say beforehand of an agent's work."""

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_forecasts import BroughtForecasts, Forecast, ForecastSet

_PATH = "/v1/forecast-sets"
_AT_ONCE = 1_000


class AsyncForecasts:
    """``/v1/forecast-sets``. ``wish``: name, benchmark or task_ids, tasks, about, forecasters, prompts, seed, labels, notes."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, wish: Mapping[str, Any], *, idempotency_key: str | None = None) -> ForecastSet:
        """Fix tasks and forecasters and estimate; nobody is asked yet. Raises Invalid, NotFound."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = await self._http.json("POST", _PATH, json=dict(wish), headers=headers)
        return ForecastSet.model_validate(body)

    async def start(self, set_id: str, *, retry_failed: bool = False) -> ForecastSet:
        """Ask for what is missing; wait with ``client.operations.wait(set.operation_id)``. Raises Conflict, Invalid."""
        found = await self._http.json("POST", f"{_of(set_id)}/start", json={"retry_failed": retry_failed})
        return ForecastSet.model_validate(found)

    async def cancel(self, set_id: str) -> ForecastSet:
        """Ask for nothing more; what was made stays. Raises Conflict."""
        return ForecastSet.model_validate(await self._http.json("POST", f"{_of(set_id)}/cancel"))

    async def get(self, set_id: str) -> ForecastSet:
        return ForecastSet.model_validate(await self._http.json("GET", _of(set_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[ForecastSet]:
        """Yield sets; ``filters``: state, benchmark_id, agent_id, label.<name>, sort."""
        async for item in pages(self._http, _PATH, filters or {}, limit):
            yield ForecastSet.model_validate(item)

    async def rows(
        self, set_id: str, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Forecast]:
        """Yield a set's forecasts; ``filters``: task_id, forecaster, prompt, state, source."""
        async for item in pages(self._http, f"{_of(set_id)}/forecasts", filters or {}, limit):
            yield Forecast.model_validate(item)

    async def bring(self, set_id: str, forecasts: Iterable[Mapping[str, Any]]) -> BroughtForecasts:
        """Record forecasts that were made elsewhere: task (or item key), forecaster, p_hat, and what else is known.

        Sent piece by piece; may be repeated. Raises Invalid.
        """
        new = known = 0
        rest = iter(forecasts)
        while piece := [dict(one) for one in islice(rest, _AT_ONCE)]:
            body = await self._http.json("POST", f"{_of(set_id)}/forecasts", json={"forecasts": piece})
            found = BroughtForecasts.model_validate(body)
            new, known = new + found.new, known + found.known
        return BroughtForecasts(new=new, known=known)


def _of(set_id: str) -> str:
    return f"{_PATH}/{quote(set_id, safe='')}"
