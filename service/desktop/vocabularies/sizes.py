"""The largest picture that a model's provider does not shrink: coordinates of a shrunk picture are off."""

import math
import re
from dataclasses import dataclass

from service.domain.desktop import Size

_PATCH = 28
"""Side of the square, in pixels, in which Anthropic counts a picture."""


@dataclass(frozen=True, slots=True)
class Bound:
    long_edge: int
    pixels: int
    patches: int

    def holds(self, size: Size) -> bool:
        patches = math.ceil(size.width / _PATCH) * math.ceil(size.height / _PATCH)
        edge = max(size.width, size.height)
        return edge <= self.long_edge and size.width * size.height <= self.pixels and patches <= self.patches


SMALL = Bound(long_edge=1568, pixels=1_150_000, patches=1568)
LARGE = Bound(long_edge=2576, pixels=3_750_000, patches=4784)
_RULES: tuple[tuple[str, Bound | None], ...] = (
    (r"claude-opus-4[-.][789]\b", LARGE),
    (r"claude-(opus|sonnet|fable|mythos)-([5-9]|\d\d)\b(?!\d)", LARGE),
    (r"claude", SMALL),
    (r"(^|[/.])(gpt-|o\d|computer-use-preview|gemini-)", None),
)
"""Model ids by pattern, first match; null: sent as the screen is. What matches nothing gets the smaller one."""


def image_size(screen: Size, model: str | None) -> Size:
    """Return the screen's size, or the largest of the same shape that this model is shown unshrunk."""
    bound = next((bound for pattern, bound in _RULES if re.search(pattern, model or "")), SMALL)
    return screen if bound is None else fitted(screen, bound)


def fitted(screen: Size, bound: Bound) -> Size:
    if bound.holds(screen):
        return screen
    edge = max(screen.width, screen.height)
    scale = min(bound.long_edge / edge, math.sqrt(bound.pixels / (screen.width * screen.height)))
    steps = (_scaled(screen, side / edge) for side in range(math.floor(edge * scale), 0, -1))
    return next(size for size in steps if bound.holds(size))


def _scaled(size: Size, scale: float) -> Size:
    return Size(width=max(1, round(size.width * scale)), height=max(1, round(size.height * scale)))
