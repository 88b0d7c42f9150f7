"""The hidden rubrics: JobBench's file, also in its two older shapes."""

import math
from dataclasses import dataclass
from typing import Any, cast

from service.graders import strict_json
from service.graders.contract import GraderFault, GradingInput

MOST_RUBRICS, MOST_CRITERIA = 500, 200
_MOST_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Rubric:
    index: int
    """From 1, in the file's order."""
    text: str
    weight: float
    criteria: tuple[str, ...]
    needs_images: bool | None
    """Null: the file does not say."""


def read(given: GradingInput, path: str) -> list[Rubric]:
    """Return the rubrics of the hidden file. Raises GraderFault ``hidden_missing``, ``rubrics_unusable``."""
    try:
        with given.open_hidden(path) as stream:
            return parse(strict_json.read_object(stream))
    except strict_json.NotUsable as error:
        raise GraderFault("rubrics_unusable", f"{path}: {error}") from error


def parse(found: dict[str, Any]) -> list[Rubric]:
    """Read the file's object. Raises NotUsable."""
    listed = found.get("rubrics", found.get("evaluation_rubrics"))
    if not isinstance(listed, list) or not listed:
        raise strict_json.NotUsable("no list of rubrics")
    items = cast(list[Any], listed)
    if len(items) > MOST_RUBRICS:
        raise strict_json.NotUsable(f"more than {MOST_RUBRICS} rubrics")
    rubrics = [_rubric(n, item) for n, item in enumerate(items, 1)]
    if not sum(r.weight for r in rubrics) > 0:
        raise strict_json.NotUsable("no rubric has a weight")
    return rubrics


def _rubric(n: int, item: Any) -> Rubric:
    if not isinstance(item, dict):
        raise strict_json.NotUsable(f"rubric {n} is no object")
    given = cast(dict[str, Any], item)
    criteria = given.get("criterion")
    criteria = [criteria] if isinstance(criteria, str) else criteria
    if not isinstance(criteria, list) or not 0 < len(cast(list[Any], criteria)) <= MOST_CRITERIA:
        raise strict_json.NotUsable(f"rubric {n} has no list of 1 to {MOST_CRITERIA} criteria")
    texts = tuple(_text(c, f"a criterion of rubric {n}") for c in cast(list[Any], criteria))
    needs = given.get("needs_images")
    if not isinstance(needs, bool | None):
        raise strict_json.NotUsable(f"needs_images of rubric {n} is neither true nor false")
    return Rubric(n, _text(given.get("rubric"), f"rubric {n}"), _weight(given.get("weight"), n), texts, needs)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_CHARS:
        raise strict_json.NotUsable(f"{what} has no text of at most {_MOST_CHARS} characters")
    return value


def _weight(value: Any, n: int) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= 1e9
        or not math.isfinite(value)
    ):
        raise strict_json.NotUsable(f"rubric {n} has no weight of 0 or more")
    return float(value)
