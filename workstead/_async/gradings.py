"""Gradings: one vote of one method on one sealed deliverable."""

from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead.models import Grading

DECIDED = frozenset({"graded", "abstained", "failed"})


class AsyncGradings:
    """``/v1/gradings``; those of a run are ``client.runs.gradings``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def get(self, grading_id: str) -> Grading:
        return Grading.model_validate(await self._http.json("GET", f"/v1/gradings/{quote(grading_id, safe='')}"))

    async def wait(self, grading_id: str) -> Grading:
        """Return the grading once it is decided or has failed."""
        tried = 0
        while (grading := await self.get(grading_id)).state not in DECIDED:
            await self._http.pause(tried)
            tried += 1
        return grading
