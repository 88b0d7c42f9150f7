"""Embeddings of tasks' texts: what is asked for, what is sent, and what an answer must be."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import Field

from service.domain.tasks import Name, Strict

OPERATION = "embeddings"
MOST_CHARS = 8_000
"""Of a text that is sent: its beginning."""
MOST_DIMENSIONS = 1_024
"""Of a vector: a regression on more than there are jobs tells nothing."""
BATCH = 16
"""Texts of one request."""
Asked = Annotated[int, Field(ge=0, le=MOST_DIMENSIONS)]


class EmbeddingsRequest(Strict):
    model: Name
    """Name in the catalogue."""
    dimensions: Asked = 256
    """Numbers of each vector; 0: the model's own, for models that cannot be asked for less."""


class EmbeddingsSpec(EmbeddingsRequest):
    """Of the operation."""

    benchmark_id: str


def shown(instruction: str) -> str:
    """Return the text of a task that is sent; never empty, which providers refuse."""
    return instruction[:MOST_CHARS].strip() or "-"


def request_body(upstream_id: str, texts: Sequence[str], asked: int) -> dict[str, Any]:
    """Return the body of ``POST /v1/embeddings``."""
    body: dict[str, Any] = {"model": upstream_id, "input": list(texts), "encoding_format": "float"}
    return body | {"dimensions": asked} if asked else body


def vectors_of(answer: Any, n: int, asked: int) -> list[list[float]]:
    """Return the vectors of ``n`` texts in their order. Raises ValueError for an answer that is not that."""
    entries = cast("Mapping[str, Any]", answer).get("data") if isinstance(answer, Mapping) else None
    if not isinstance(entries, list) or len(cast("list[Any]", entries)) != n:
        raise ValueError("not one vector for each text")
    found: dict[int, list[float]] = {}
    for place, entry in enumerate(cast("list[Any]", entries)):
        if not isinstance(entry, Mapping):
            raise ValueError("an entry is no object")
        one = cast("Mapping[str, Any]", entry)
        index = one.get("index", place)
        found[index if isinstance(index, int) else -1] = _vector(one.get("embedding"))
    if sorted(found) != list(range(n)):
        raise ValueError("the places of the vectors are not those of the texts")
    lengths = {len(vector) for vector in found.values()}
    if len(lengths) != 1 or (asked and lengths != {asked}):
        raise ValueError(f"vectors of {sorted(lengths)} numbers, asked for {asked or 'one length'}")
    return [found[place] for place in range(n)]


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list) or not 0 < len(cast("list[Any]", value)) <= MOST_DIMENSIONS:
        raise ValueError(f"a vector is a list of 1 to {MOST_DIMENSIONS} numbers; ask for fewer dimensions")
    return [_number(one) for one in cast("list[Any]", value)]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a vector has what is no number")
    return float(value)
