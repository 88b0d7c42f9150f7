"""The mouse's wheel: directions, and pixels of scrolling as clicks."""

import math

from service.domain.desktop import DesktopAction

CLICK_PIXELS = 100
"""What one click of the wheel scrolls."""
WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""Word → (right, down)."""


def clicks(pixels: float) -> int:
    """Return the wheel's clicks for a distance: at least one in its direction, none for none."""
    count = max(1, math.floor(abs(pixels) / CLICK_PIXELS + 0.5)) if pixels else 0
    return count if pixels > 0 else -count


def way_of(action: DesktopAction) -> str | None:
    """Return the direction of a scrolling; null if it is none of the four."""
    wanted = ((action.dx > 0) - (action.dx < 0), (action.dy > 0) - (action.dy < 0))
    return next((word for word, way in WAYS.items() if way == wanted), None)
