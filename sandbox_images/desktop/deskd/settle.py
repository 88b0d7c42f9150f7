"""When the screen has come to rest. Pure.

A caret blinks for ever, and a clock ticks: differences of a caret's size are overlooked, and so is whatever comes back to
what was seen at the same place before (a terminal's block, the frame that runs around a copied cell). Frames are compared
with the last that counted as a change, not with the one before, so that text which grows letter by letter is a change.
"""

import zlib
from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageChops

Box = tuple[int, int, int, int]
THIN, TALL, SMALL = 3, 100, 100
"""Of a caret: at most that many pixels wide and tall, or of a smaller area."""
MOST_CARETS: Final = 6
GAP: Final = 6
"""Differences that are nearer to each other are one."""
MOST_BOXES, MOST_SEEN = 32, 256


class Rest:
    """``still``: areas whose changes never count."""

    def __init__(self, first: Image.Image, now: float, quiet_s: float, still: Sequence[Box] = ()) -> None:
        self._base, self._since, self._quiet_s, self._still = first.copy(), now, quiet_s, still
        self._seen: dict[Box, set[int]] = {}

    def see(self, frame: Image.Image, now: float) -> bool:
        """Take the screen as it is now; return whether it has rested for the quiet time."""
        if frame.size != self._base.size:
            self._base, self._since = frame.copy(), now
            return False
        boxes = [box for box in differences(self._base, frame) if not any(_inside(box, area) for area in self._still)]
        if not self._overlooked(boxes, frame):
            self._remember(boxes, frame)
            self._base, self._since = frame.copy(), now
        return now - self._since >= self._quiet_s

    def _overlooked(self, boxes: Sequence[Box], frame: Image.Image) -> bool:
        unknown = [box for box in boxes if _print(frame, box) not in self._seen.get(box, ())]
        return len(unknown) <= MOST_CARETS and all(is_caret(box) for box in unknown)

    def _remember(self, boxes: Sequence[Box], frame: Image.Image) -> None:
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        for box in boxes[:MOST_BOXES]:
            self._seen.setdefault(box, set()).update((_print(self._base, box), _print(frame, box)))


def is_caret(box: Box) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return (width <= THIN and height <= TALL) or width * height < SMALL


def differences(old: Image.Image, new: Image.Image) -> list[Box]:
    """Return the boxes of what differs between two pictures of one size."""
    changed = ImageChops.difference(old, new)
    whole = changed.getbbox()
    if whole is None:
        return []
    if is_caret(whole):
        return [whole]
    bands = changed.crop(whole).split()
    mask = bands[0]
    for band in bands[1:3]:
        mask = ImageChops.lighter(mask, band)
    return _parts(mask, (whole[0], whole[1]))


def _parts(mask: Image.Image, origin: tuple[int, int]) -> list[Box]:
    found = list[Box]()
    for top, bottom in _runs(mask):
        band = mask.crop((0, top, mask.width, bottom))
        for left, right in _runs(band.transpose(Image.Transpose.TRANSPOSE)):
            inner = band.crop((left, 0, right, band.height)).getbbox()
            if inner is not None:
                x, y = origin[0] + left, origin[1] + top
                found.append((x, y + inner[1], x + right - left, y + inner[3]))
    return found


def _runs(mask: Image.Image) -> list[tuple[int, int]]:
    """Return the rows that hold something, those nearer than GAP together."""
    data, width, empty = mask.tobytes(), mask.width, bytes(mask.width)
    found = list[tuple[int, int]]()
    for row in range(mask.height):
        if data[row * width : (row + 1) * width] != empty:
            if found and row - found[-1][1] < GAP:
                found[-1] = found[-1][0], row + 1
            else:
                found.append((row, row + 1))
    return found


def _print(frame: Image.Image, box: Box) -> int:
    return zlib.crc32(frame.crop(box).tobytes())


def _inside(box: Box, area: Box) -> bool:
    return box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]
