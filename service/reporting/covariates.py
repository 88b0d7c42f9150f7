"""A user's own figures per group beside scores: correlation, and the four quadrants of two median splits (JobBench, Fig. 7)."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from statistics import fmean, median

MOST_ROWS = 2_000
MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Placed:
    group: str
    score: float
    value: float
    quadrant: str
    """``high`` or ``low`` of score, then of value, such as ``high/low``; a median itself is high."""


@dataclass(frozen=True, slots=True)
class Joined:
    rows: list[Placed]
    pearson: float | None
    median_score: float | None
    median_value: float | None
    scores_alone: list[str]
    """Groups that have a score and no value."""
    values_alone: list[str]


def joined(scores: Mapping[str, float], values: Mapping[str, float]) -> Joined:
    """Join by group. Groups of one side alone are named, and in no figure."""
    both = sorted(scores.keys() & values.keys())
    mine, others = [scores[g] for g in both], [values[g] for g in both]
    middle, other = (median(mine), median(others)) if both else (None, None)
    rows = [
        Placed(group, s, v, f"{_side(s, middle)}/{_side(v, other)}")
        for group, s, v in zip(both, mine, others, strict=True)
    ]
    return Joined(
        rows,
        pearson(mine, others),
        middle,
        other,
        sorted(scores.keys() - values.keys()),
        sorted(values.keys() - scores.keys()),
    )


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the product-moment correlation; null with fewer than two pairs, and where one side is constant.

    Raises ValueError for unequal lengths.
    """
    if len(first) != len(second):
        raise ValueError("the two are not of the same items")
    if len(first) < 2:
        return None
    a, b = fmean(first), fmean(second)
    spread = math.sqrt(math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second))
    together = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    return max(-1.0, min(1.0, together / spread)) if spread > 0 else None


def read_covariates(text: str) -> dict[str, float]:
    """Read CSV of two columns with a heading: group, number. Empty numbers are left out.

    Raises ValueError, with the line, for a text that is longer than 256 KiB or 2 000 rows, for other than two columns, for a
    group named twice and for a number that is none.
    """
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"longer than {MOST_BYTES} bytes")
    found: dict[str, float] = {}
    for n, row in enumerate(csv.reader(StringIO(text.removeprefix("\ufeff"))), 1):
        if n == 1 or not row:
            continue
        if n > MOST_ROWS + 1:
            raise ValueError(f"more than {MOST_ROWS} rows")
        if len(row) != 2 or row[0] in found:
            raise ValueError(f"line {n}: {'two columns are needed' if len(row) != 2 else 'the group is named twice'}")
        if row[1].strip():
            found[row[0]] = _number(row[1], n)
    return found


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"line {line}: no number")
    return value


def _side(value: float, middle: float | None) -> str:
    return "high" if middle is not None and value >= middle else "low"
