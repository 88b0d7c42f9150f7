"""Probes of judges: what one does with deliverables of one's own, before anything depends on it."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Operation
from workstead.models_judges import JudgeProbe, ProbeEstimate

_PATH = "/v1/judge-probes"


class AsyncJudges:
    """``/v1/judge-probes``. ``wish``: judge, plan, filter or runs, n, seed, repeats, sections, compare_with."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def estimate_probe(self, wish: Mapping[str, Any]) -> ProbeEstimate:
        """Return the runs that it would use and how many gradings it would ask for. Raises Invalid."""
        return ProbeEstimate.model_validate(await self._http.json("POST", f"{_PATH}/estimate", json=dict(wish)))

    async def probe(self, wish: Mapping[str, Any]) -> Operation:
        """Try a judge out; wait with ``client.operations.wait``, whose result names the probe. Raises Invalid."""
        return Operation.model_validate(await self._http.json("POST", _PATH, json=dict(wish)))

    async def get_probe(self, probe_id: str) -> JudgeProbe:
        return JudgeProbe.model_validate(await self._http.json("GET", f"{_PATH}/{quote(probe_id, safe='')}"))

    async def probes(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[JudgeProbe]:
        """Yield the probes that were made; ``filters``: model, plan."""
        async for item in pages(self._http, _PATH, filters or {}, limit):
            yield JudgeProbe.model_validate(item)
