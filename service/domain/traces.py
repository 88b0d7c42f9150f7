"""A run as a trace: ids that follow from the run's own, and spans as plain values. Pure.

The trace id of a run is the first half of the SHA-256 of its id, so that whoever knows the run finds its trace.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Value = str | bool | int | float | Sequence[str]


def trace_id(run_id: str) -> str:
    """Return 32 hexadecimal digits."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]


def span_id(run_id: str, *parts: str | int) -> str:
    """Return 16 hexadecimal digits; the same for the same part of the same run, so that a repetition is no news."""
    return hashlib.sha256("\n".join([run_id, *map(str, parts)]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Span:
    id: str
    parent: str | None
    name: str
    start: datetime
    end: datetime
    kind: Literal["internal", "client"] = "internal"
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    error: str | None = None
    """Class of error that it ended with; null: none."""


@dataclass(frozen=True, slots=True)
class Trace:
    id: str
    spans: Sequence[Span]
