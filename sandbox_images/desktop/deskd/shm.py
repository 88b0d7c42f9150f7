"""The screen's picture through MIT-SHM: the server writes it into memory that we share, 1 to 3 ms a screen."""

# pyright: reportMissingModuleSource=false
import ctypes
from typing import Final, cast

from faults import Failed, ServerGone
from PIL import Image
from Xlib import X, error
from Xlib.display import Display
from Xlib.protocol import rq
from xlink import root_of

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p
_LIBC.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_LIBC.shmdt.argtypes = (ctypes.c_void_p,)
_PRIVATE, _REMOVE, _MODE, _ALL_PLANES = 0, 0, 0o600, 0xFFFFFFFF
_NOWHERE: Final = ctypes.c_void_p(-1).value
_PIXEL = 4
Box = tuple[int, int, int, int]


class _Attach(rq.Request):
    _request = rq.Struct(
        rq.Card8("opcode"),
        rq.Opcode(1),
        rq.RequestLength(),
        rq.Card32("segment"),
        rq.Card32("memory"),
        rq.Bool("read_only"),
        rq.Pad(3),
    )


class _Detach(rq.Request):
    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(2), rq.RequestLength(), rq.Card32("segment"))


class _GetImage(rq.ReplyRequest):
    _request = rq.Struct(
        rq.Card8("opcode"),
        rq.Opcode(4),
        rq.RequestLength(),
        rq.Drawable("drawable"),
        rq.Int16("x"),
        rq.Int16("y"),
        rq.Card16("width"),
        rq.Card16("height"),
        rq.Card32("planes"),
        rq.Card8("form"),
        rq.Pad(3),
        rq.Card32("segment"),
        rq.Card32("offset"),
    )
    _reply = rq.Struct(
        rq.ReplyCode(),
        rq.Card8("depth"),
        rq.Card16("sequence_number"),
        rq.ReplyLength(),
        rq.Card32("visual"),
        rq.Card32("size"),
        rq.Pad(16),
    )


class Capture:
    """Of the whole screen, or parts of it; follows the screen's size."""

    def __init__(self, link: Display) -> None:
        self._link = link
        found = link.query_extension("MIT-SHM")
        if found is None or not found.present:
            raise ServerGone("the X server has no MIT-SHM")
        self._opcode = int(found.major_opcode)
        self._segment: int | None = None
        self._address, self._room = 0, 0

    def grab(self, box: Box) -> Image.Image:
        """Return the pixels of ``box`` (on the screen), blue first, valid until the next call."""
        width, height = box[2] - box[0], box[3] - box[1]
        size = width * height * _PIXEL
        if size > self._room:
            self._make(size)
        try:
            self._ask(box)
        except error.BadMatch as fault:
            raise Failed("out_of_bounds", "the screen has another size now") from fault
        pixels = cast("bytes", (ctypes.c_char * size).from_address(self._address))
        return Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", 0, 1)

    def picture(self, box: Box) -> Image.Image:
        """Return a copy of the pixels of ``box``, as RGB."""
        raw = self.grab(box)
        blue, green, red, _ = raw.split()
        return Image.merge("RGB", (red, green, blue))

    def _ask(self, box: Box) -> None:
        _GetImage(
            display=self._link.display,
            opcode=self._opcode,
            drawable=root_of(self._link).id,
            x=box[0],
            y=box[1],
            width=box[2] - box[0],
            height=box[3] - box[1],
            planes=_ALL_PLANES,
            form=X.ZPixmap,
            segment=self._segment,
            offset=0,
        )

    def _make(self, size: int) -> None:
        self._drop()
        memory = _LIBC.shmget(_PRIVATE, ctypes.c_size_t(size), _MODE)
        if memory < 0:
            raise Failed("too_large", f"no shared memory of {size} bytes")
        address = _LIBC.shmat(memory, None, 0)
        caught = error.CatchError()
        segment = self._link.display.allocate_resource_id()
        _Attach(
            display=self._link.display,
            onerror=caught,
            opcode=self._opcode,
            segment=segment,
            memory=memory,
            read_only=False,
        )
        self._link.sync()
        # Goes with the last of its users, however they end.
        _LIBC.shmctl(memory, _REMOVE, None)
        if caught.get_error() or address in (None, _NOWHERE):
            raise ServerGone("the X server does not share memory")
        self._segment, self._address, self._room = segment, int(address), size

    def _drop(self) -> None:
        if self._segment is not None:
            _Detach(display=self._link.display, opcode=self._opcode, segment=self._segment)
            self._link.sync()
            self._link.display.free_resource_id(self._segment)
            _LIBC.shmdt(self._address)
            self._segment, self._room = None, 0
