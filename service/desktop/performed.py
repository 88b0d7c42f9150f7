"""What came of a batch, checked and bounded; every word of it is the sandbox's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.domain.desktop import ActionResult, DesktopState

Format = Literal["png", "webp", "jpeg"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture whose first bytes say what the other fields say."""

    format: Format
    width: int
    height: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Performed:
    state: DesktopState | None = None
    results: Sequence[ActionResult] = ()
    images: Sequence[Encoded] = ()
    """Of ``screenshot`` and ``zoom`` actions."""
    before: Encoded | None = None
    shot: Encoded | None = None
    took_s: float = 0.0
    """As the host measured it."""
    error: str | None = None
    """Of the batch as a whole: ``desktop_lost``, ``bad_answer``, ``timed_out``, ``busy`` (nothing was done),
    ``too_large`` (nothing was done), or deskd's own word."""
    detail: str = ""
