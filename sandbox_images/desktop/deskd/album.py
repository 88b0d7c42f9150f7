"""The pictures of one answer."""

# pyright: reportMissingModuleSource=false
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import encode
import fields
from cursor import Cursor
from encode import Encoded, Format, scaled
from faults import Failed
from screen import size_of
from shm import Box, Capture
from Xlib.display import Display

MOST_BYTES: Final = 24 << 20
"""Of an answer's body."""


@dataclass(frozen=True)
class Wanted:
    """How a picture is wanted."""

    form: Format = Format()  # noqa: RUF009 - frozen
    size: tuple[int, int] | None = None
    cursor: bool = True


def wanted(shot: Mapping[str, Any]) -> Wanted:
    """Raises Failed ``bad_action``."""
    name = shot.get("format", "png")
    cursor = shot.get("cursor", True)
    if name not in encode.FORMATS or not isinstance(cursor, bool):
        raise Failed("bad_action", f"a picture's format is one of {', '.join(encode.FORMATS)}")
    form = Format(name, fields.whole(shot, "quality", 1, 100, 75))
    return Wanted(form, fields.size(shot, "size"), cursor)


class Album:
    """Keeps room for the picture before and the one after, whatever the actions' take."""

    def __init__(self, link: Display, capture: Capture, cursor: Cursor) -> None:
        self._link, self._capture, self._cursor = link, capture, cursor
        self.pictures: list[tuple[str, Encoded]] = []

    def take(self, role: str, how: Wanted, box: Box | None = None, size: tuple[int, int] | None = None) -> int:
        """Add a picture, of ``box`` or of the whole screen; return its number in its role. Raises Failed."""
        area = box or (0, 0, *size_of(self._link))
        picture = self._capture.picture(area)
        if how.cursor:
            self._cursor.draw(picture, area[:2])
        made = encode.encode(scaled(picture, size or how.size), how.form)
        reserve = encode.MOST_BYTES if role == "action" else 0
        if sum(len(one.data) for _, one in self.pictures) + len(made.data) + reserve > MOST_BYTES:
            raise Failed("too_large", f"the pictures of one batch have at most {MOST_BYTES} bytes together")
        self.pictures.append((role, made))
        return sum(one == role for one, _ in self.pictures) - 1

    def listed(self) -> list[dict[str, Any]]:
        return [
            {"role": role, "format": one.format, "width": one.size[0], "height": one.size[1], "bytes": len(one.data)}
            for role, one in self.pictures
        ]
