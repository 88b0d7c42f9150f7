"""Where a payload's coordinates are on the screen, and back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.desktop.vocabularies.fields import Fields, bad
from service.domain.desktop import CoordinateSpace, Point, Region, Size

_OVER = 1
"""Coordinates this far over an edge are models' rounding, and clamped; anything further is an error of the model's."""


@dataclass(frozen=True, slots=True)
class Place:
    space: CoordinateSpace
    screen: Size

    def point(self, x: float, y: float) -> Point:
        """Return the pixel of the screen. Raises Invalid ``bad_action`` for a point outside the picture."""
        if not (-_OVER <= x < self.space.width + _OVER and -_OVER <= y < self.space.height + _OVER):
            raise self._outside(f"({x:g}, {y:g})")
        return self.space.to_screen(x, y, self.screen)

    def pair(self, fields: Fields, x: str = "x", y: str = "y") -> Point:
        return self.point(*(fields.number(name, -math.inf, math.inf) for name in (x, y)))

    def at(self, fields: Fields, x: str = "x", y: str = "y") -> dict[str, int]:
        """Return x and y as an action has them, none where the payload has neither."""
        return self.pair(fields, x, y).model_dump() if fields.has(x) or fields.has(y) else {}

    def region(self, corners: Sequence[float]) -> Region:
        """Return the rectangle between two corners, whichever they are. Raises Invalid ``bad_action``."""
        (x0, x1), (y0, y1) = sorted(corners[0::2]), sorted(corners[1::2])
        if x0 < -_OVER or y0 < -_OVER or x1 > self.space.width + _OVER or y1 > self.space.height + _OVER:
            raise self._outside(f"({x0:g}, {y0:g}) to ({x1:g}, {y1:g})")
        left, right = _stretch(x0, x1, self.space.width, self.screen.width)
        top, bottom = _stretch(y0, y1, self.space.height, self.screen.height)
        if left >= right or top >= bottom:
            raise bad(f"the region ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) has no area")
        return Region(x0=left, y0=top, x1=right, y1=bottom)

    def words(self, point: Point) -> list[int]:
        """Return the point as the payload counts."""
        return list(self.space.from_screen(point, self.screen))

    def corners(self, region: Region) -> list[int]:
        left, right = _stretch(region.x0, region.x1, self.screen.width, self.space.width)
        top, bottom = _stretch(region.y0, region.y1, self.screen.height, self.space.height)
        return [left, top, right, bottom]

    @property
    def grain(self) -> int:
        """Pixels of the screen that one step of the payload's coordinates may be."""
        if self.space.width == self.screen.width and self.space.height == self.screen.height:
            return 0
        return 1 + math.ceil(max(self.screen.width / self.space.width, self.screen.height / self.space.height))

    def _outside(self, what: str) -> Exception:
        size = f"{self.space.width}x{self.space.height}"
        unit = "the 0-999 grid of the screen" if self.space.normalised else f"the picture of {size} pixels"
        return bad(f"{what} is outside {unit}")


def _stretch(low: float, high: float, space: int, target: int) -> tuple[int, int]:
    """Return the edges in the target's units, outwards, so that nothing of what was asked for is cut off."""
    return max(0, math.floor(low * target / space)), min(target, math.ceil(high * target / space))
