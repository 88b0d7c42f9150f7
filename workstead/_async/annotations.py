"""Annotations: items labelled by models or people; accepted labels are facets of tasks."""

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models_annotations import Annotation, AnnotationSet, AnnotationValue, BroughtAnnotations

_PATH = "/v1/annotation-sets"
_AT_ONCE = 1_000


class AsyncAnnotations:
    """``/v1/annotation-sets``. ``wish``: name, about, benchmark, task_ids, run_ids or texts, tasks, question, answer,
    annotators, votes, reason, seed, labels, notes."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, wish: Mapping[str, Any], *, idempotency_key: str | None = None) -> AnnotationSet:
        """Fix items and annotators and estimate; nobody is asked yet. Raises Invalid, NotFound."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = await self._http.json("POST", _PATH, json=dict(wish), headers=headers)
        return AnnotationSet.model_validate(body)

    async def start(self, set_id: str, *, retry_failed: bool = False) -> AnnotationSet:
        """Ask for what is missing; wait with ``client.operations.wait(set.operation_id)``. Raises Conflict, Invalid."""
        found = await self._http.json("POST", f"{_of(set_id)}/start", json={"retry_failed": retry_failed})
        return AnnotationSet.model_validate(found)

    async def cancel(self, set_id: str) -> AnnotationSet:
        """Ask for nothing more; what was made stays. Raises Conflict."""
        return AnnotationSet.model_validate(await self._http.json("POST", f"{_of(set_id)}/cancel"))

    async def accept(self, set_id: str) -> AnnotationSet:
        """Seal it: its values are the facet ``name@version`` from now on. Raises Conflict."""
        return AnnotationSet.model_validate(await self._http.json("POST", f"{_of(set_id)}/accept"))

    async def get(self, set_id: str) -> AnnotationSet:
        return AnnotationSet.model_validate(await self._http.json("GET", _of(set_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[AnnotationSet]:
        """Yield sets; ``filters``: name, state, about, benchmark_id, label.<name>, sort."""
        async for item in pages(self._http, _PATH, filters or {}, limit):
            yield AnnotationSet.model_validate(item)

    async def rows(
        self, set_id: str, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Annotation]:
        """Yield a set's votes; ``filters``: target, annotator, state."""
        async for item in pages(self._http, f"{_of(set_id)}/annotations", filters or {}, limit):
            yield Annotation.model_validate(item)

    async def values(
        self, set_id: str, *, only_open: bool = False, limit: int | None = None
    ) -> AsyncIterator[AnnotationValue]:
        """Yield what a set says of its targets, in their order; ``only_open``: those without a value."""
        filters = {"only": "open"} if only_open else {}
        async for item in pages(self._http, f"{_of(set_id)}/values", filters, limit):
            yield AnnotationValue.model_validate(item)

    async def bring(self, set_id: str, annotations: Iterable[Mapping[str, Any]]) -> BroughtAnnotations:
        """Record what people say: target (item key, task, run or text id), value, and a reason where there is one.

        Sent piece by piece; may be repeated. Raises Invalid, Conflict.
        """
        new = known = 0
        rest = iter(annotations)
        while piece := [dict(one) for one in islice(rest, _AT_ONCE)]:
            body = await self._http.json("POST", f"{_of(set_id)}/annotations", json={"annotations": piece})
            found = BroughtAnnotations.model_validate(body)
            new, known = new + found.new, known + found.known
        return BroughtAnnotations(new=new, known=known)


def _of(set_id: str) -> str:
    return f"{_PATH}/{quote(set_id, safe='')}"
