"""What people say against verdicts, and what judges said: reviews and votes."""

import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_grading import Review, Vote


class AsyncReviews:
    """``/v1/reviews``: contests and overrides. The old verdict is always kept."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def contest(
        self, grading_id: str, reason: str, *, author: str | None = None, idempotency_key: str | None = None
    ) -> Review:
        """Say that a verdict is doubted. Raises Conflict (there is none yet)."""
        return await self._say(grading_id, "contest", {"reason": reason, "author": author}, idempotency_key)

    async def override(
        self,
        grading_id: str,
        score: float,
        reason: str,
        *,
        max_score: float | None = None,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> Review:
        """Put a score in the verdict's place; ``max_score`` is the verdict's own by default. Raises Conflict, Invalid."""
        body = {"score": score, "max_score": max_score, "reason": reason, "author": author}
        return await self._say(grading_id, "override", body, idempotency_key)

    async def withdraw(self, review_id: str) -> Review:
        """Take it back; what stood before stands again. May be repeated."""
        path = f"/v1/reviews/{quote(review_id, safe='')}/withdraw"
        return Review.model_validate(await self._http.json("POST", path))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Review]:
        """Yield reviews, newest first; ``filters``: run_id, grading_id, kind, author."""
        async for item in pages(self._http, "/v1/reviews", filters or {}, limit):
            yield Review.model_validate(item)

    async def _say(self, grading_id: str, kind: str, body: Mapping[str, Any], key: str | None) -> Review:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"/v1/gradings/{quote(grading_id, safe='')}/{kind}"
        return Review.model_validate(await self._http.json("POST", path, json=dict(body), headers=headers))


class AsyncVotes:
    """``/v1/gradings/{id}/votes``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def list(self, grading_id: str, *, limit: int | None = None) -> AsyncIterator[Vote]:
        """Yield a grading's votes by item, judge and number, as far as they are in."""
        async for item in pages(self._http, _votes(grading_id), {}, limit):
            yield Vote.model_validate(item)

    async def asked(self, grading_id: str, judge: str, n: int, item: str = "") -> dict[str, Any]:
        """Return what the judge was asked last: system, text, digests of images. Raises NotFound, Gone, Forbidden."""
        params = {"judge": judge, "n": n, "item": item}
        return await self._http.json("GET", f"{_votes(grading_id)}/rendered", params=params)


def _votes(grading_id: str) -> str:
    return f"/v1/gradings/{quote(grading_id, safe='')}/votes"
