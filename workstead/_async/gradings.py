"""Gradings: one vote of one method on one sealed deliverable."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from workstead._async.files import download
from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Criterion, DeadLetter, Grading

DECIDED = frozenset({"graded", "abstained", "failed"})


class AsyncGradings:
    """``/v1/gradings``; those of a run are ``client.runs.gradings``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def get(self, grading_id: str) -> Grading:
        return Grading.model_validate(await self._http.json("GET", _path(grading_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Grading]:
        """Yield the gradings of all runs; ``filters``: run_id, method, plan, state, cause, sort, …"""
        async for item in pages(self._http, "/v1/gradings", filters or {}, limit):
            yield Grading.model_validate(item)

    async def criteria(
        self, grading_id: str, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Criterion]:
        """Yield what was decided on each test, question or rubric item; ``filters``: passed, cause."""
        async for item in pages(self._http, f"{_path(grading_id)}/criteria", filters or {}, limit):
            yield Criterion.model_validate(item)

    async def jobbench(self, grading_id: str) -> dict[str, Any]:
        """Return a ``rubric_chain`` grading as JobBench's result file has it."""
        return await self._http.json("GET", f"{_path(grading_id)}/jobbench")

    async def import_jobbench(
        self, run_id: str, result: Mapping[str, Any], *, primary: bool = False, idempotency_key: str | None = None
    ) -> Grading:
        """Take the content of one of JobBench's result files as a grading of the run; ``primary``: as its verdict."""
        path = f"/v1/runs/{quote(run_id, safe='')}/gradings/jobbench"
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = {"result": dict(result), "primary": primary}
        return Grading.model_validate(await self._http.json("POST", path, json=body, headers=headers))

    async def dead_letter(self) -> Sequence[DeadLetter]:
        """Return how many gradings failed, by cause and method."""
        found = await self._http.json("GET", "/v1/gradings/dead-letter")
        return [DeadLetter.model_validate(one) for one in found["data"]]

    async def replay(self, chosen: Mapping[str, Any], *, idempotency_key: str | None = None) -> tuple[int, bool]:
        """Put failed gradings back into their queues, up to 200; return how many, and whether there are more.

        ``chosen``: lists ids, cause, method, plan, run_id, regrade_id, which hold together; or ``{"all": True}``.
        """
        found = await self._move("replay", chosen, idempotency_key)
        return found["replayed"], found["more"]

    async def cancel_all(self, chosen: Mapping[str, Any], *, idempotency_key: str | None = None) -> tuple[int, bool]:
        """End open gradings as failed, up to 200; return how many, and whether there are more. ``chosen``: see replay."""
        found = await self._move("cancel", chosen, idempotency_key)
        return found["cancelled"], found["more"]

    async def cancel(self, grading_id: str) -> bool:
        """End a grading as failed; False: it had ended."""
        return bool((await self._http.json("POST", f"{_path(grading_id)}/cancel"))["cancelled"])

    async def _move(self, how: str, chosen: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return await self._http.json("POST", f"/v1/gradings/{how}", json=dict(chosen), headers=headers)

    async def export(
        self, target: Path, table: str = "verdicts", *, filters: Mapping[str, Any] | None = None, format: str = "csv"
    ) -> int:
        """Write verdicts, criteria or votes to ``target``, which must not exist, as csv or jsonl; return its bytes.

        ``filters``: as of ``list``. Raises Problem, Disconnected, FileExistsError.
        """
        query = urlencode({**(filters or {}), "table": table}, doseq=True)
        return await download(self._http, f"/v1/gradings/export.{quote(format, safe='')}?{query}", target)

    async def wait(self, grading_id: str) -> Grading:
        """Return the grading once it is decided or has failed."""
        tried = 0
        while (grading := await self.get(grading_id)).state not in DECIDED:
            await self._http.pause(tried)
            tried += 1
        return grading


def _path(grading_id: str) -> str:
    return f"/v1/gradings/{quote(grading_id, safe='')}"
