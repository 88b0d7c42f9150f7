"""One bench, one JSON line."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """``ratio`` is value / baseline of the same run, or value alone where there is no baseline (then ratio is null)."""

    bench: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    goal: str = ""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])

    def line(self) -> str:
        return json.dumps({k: _short(v) for k, v in asdict(self).items()})


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of alternating pairs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
