"""The pointer's picture, which shared memory does not show: drawn into ours."""

# pyright: reportMissingModuleSource=false
from typing import Final

from PIL import Image
from Xlib.display import Display
from Xlib.ext import xfixes
from Xlib.protocol import rq

MOST_SIDE: Final = 256


class _GetImage(rq.ReplyRequest):
    """With the pixels as bytes: python-xlib's own makes a list of numbers of them, however many."""

    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(4), rq.RequestLength())
    _reply = rq.Struct(
        rq.ReplyCode(),
        rq.Pad(1),
        rq.Card16("sequence_number"),
        rq.ReplyLength(),
        rq.Int16("x"),
        rq.Int16("y"),
        rq.Card16("width"),
        rq.Card16("height"),
        rq.Card16("xhot"),
        rq.Card16("yhot"),
        rq.Card32("serial"),
        rq.Pad(8),
        rq.Binary("pixels"),
    )


class Cursor:
    def __init__(self, link: Display) -> None:
        self._link = link
        found = link.query_extension("XFIXES")
        self._opcode = int(found.major_opcode) if found is not None and found.present else None
        if self._opcode is not None:
            xfixes.query_version(link)

    def draw(self, picture: Image.Image, origin: tuple[int, int]) -> None:
        """Draw it into an RGB picture whose upper left corner is at ``origin`` of the screen."""
        if self._opcode is None:
            return
        seen = _GetImage(display=self._link.display, opcode=self._opcode)
        size = seen.width, seen.height
        pixels = bytes(seen.pixels)[: seen.width * seen.height * 4]
        if max(size) > MOST_SIDE or len(pixels) < size[0] * size[1] * 4 or not pixels:
            return
        # Premultiplied: a paste of the colours by the alpha would darken the edges.
        shape = Image.frombuffer("RGBa", size, pixels, "raw", "BGRa", 0, 1).convert("RGBA")
        picture.paste(shape, (seen.x - seen.xhot - origin[0], seen.y - seen.yhot - origin[1]), shape)
