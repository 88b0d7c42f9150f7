"""Frames between the host and deskd: two lengths, a head in JSON, a body of bytes.

Whatever deskd says is hostile: an agent may have taken its place. Lengths are looked at before anything is buffered, and
nothing that breaks a rule here is passed on: the session is closed (:class:`BadAnswer`).
"""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError

from service.desktop.performed import Encoded, Performed
from service.desktop.pictures import NotAPicture, size_of
from service.domain.cleaning import clean_str
from service.domain.desktop import (
    MAX_ACTIONS,
    MAX_CLIPBOARD,
    MAX_IMAGE_BYTES,
    MOST_SIDE,
    ActionResult,
    Batch,
    DesktopState,
)
from service.domain.limits import KIB, MIB

PROTOCOL = 1
MAX_REQUEST = 8 * MIB
MAX_HEAD, MAX_BODY = MIB, 24 * MIB
MAX_HELLO = 4 * KIB
MOST_WINDOWS, MOST_HELD, MOST_TITLE, MOST_DETAIL = 200, 64, 1000, 500
_SIZES = struct.Struct(">II")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESULTS = TypeAdapter(list[ActionResult])
Head = dict[str, Any]


class BadAnswer(Exception):
    """Deskd broke a rule of the wire; what it says from now on is worth nothing."""


class TooLarge(Exception):
    """A request over the wire's bound."""


def encode(head: Head) -> bytes:
    """Raises TooLarge."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if len(text) > MAX_REQUEST:
        raise TooLarge(f"{len(text)} bytes; at most {MAX_REQUEST}")
    return _SIZES.pack(len(text), 0) + text


def perform_request(number: int, batch: Batch, *, before: bool) -> Head:
    actions = [a.model_dump(mode="json", exclude_defaults=True, exclude={"raw", "intent"}) for a in batch.actions]
    settle = None if batch.settle is None else batch.settle.model_dump(mode="json")
    shot = None if batch.shot is None else batch.shot.model_dump(mode="json")
    return {"id": number, "do": "perform", "actions": actions, "settle": settle, "shot": shot, "before": before}


class Inbox:
    """Cuts a byte stream into frames; holds at most one frame and one read."""

    def __init__(self) -> None:
        self.max_head, self.max_body = MAX_HELLO, 0
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Head, bytes]]:
        """Yield what is complete now. Raises BadAnswer."""
        self._bytes += data
        while len(self._bytes) >= _SIZES.size:
            head, body = _SIZES.unpack_from(self._bytes)
            if head > self.max_head or body > self.max_body:
                raise BadAnswer(f"a frame of {head} + {body} bytes")
            end = _SIZES.size + head + body
            if len(self._bytes) < end:
                return
            with memoryview(self._bytes) as view:
                frame = bytes(view[_SIZES.size : _SIZES.size + head]), bytes(view[_SIZES.size + head : end])
            del self._bytes[:end]
            yield _object(frame[0]), frame[1]


def read_hello(head: Head) -> tuple[int, int]:
    """Return the screen's width and height. Raises BadAnswer."""
    hello = head.get("hello")
    if not isinstance(hello, dict) or cast("Head", hello).get("protocol") != PROTOCOL:
        raise BadAnswer("no hello of this protocol")
    width, height = (_whole(cast("Head", hello).get(name), 1, MOST_SIDE) for name in ("width", "height"))
    return width, height


def read_fault(said: object) -> tuple[str, str] | None:
    """Return type and detail of a failure; null where none is said. Raises BadAnswer."""
    if said is None:
        return None
    if not isinstance(said, dict):
        raise BadAnswer("a failure that is no object")
    fault = cast("Head", said)
    return _word(fault.get("type")), _text(fault.get("detail", ""), MOST_DETAIL)


def read_performed(head: Head, body: bytes, batch: Batch, *, before: bool) -> Performed:
    """Return the outcome of ``batch``. ``took_s`` is the caller's to measure. Raises BadAnswer."""
    fault = read_fault(head.get("error"))
    if fault is not None:
        return Performed(error=fault[0], detail=fault[1])
    images = _images(head.get("images"), body)
    shown = [picture for role, picture in images if role == "action"]
    try:
        state = _state(DesktopState.model_validate(head.get("state")))
        results = _RESULTS.validate_python(head.get("results"))
    except ValidationError as error:
        raise BadAnswer(f"{error.error_count()} wrong fields") from error
    return Performed(
        state=state,
        results=_results(results, len(batch.actions), len(shown)),
        images=shown,
        before=_only(images, "before", asked=before),
        shot=_only(images, "shot", asked=batch.shot is not None),
    )


def _images(said: object, body: bytes) -> list[tuple[str, Encoded]]:
    if not isinstance(said, list) or len(cast("list[object]", said)) > MAX_ACTIONS + 2:
        raise BadAnswer("no list of images")
    found: list[tuple[str, Encoded]] = []
    at = 0
    for one in cast("list[object]", said):
        if not isinstance(one, dict):
            raise BadAnswer("an image that is no object")
        fields = cast("Head", one)
        size = _whole(fields.get("bytes"), 1, MAX_IMAGE_BYTES)
        found.append((str(fields.get("role")), _image(fields, body[at : at + size], size)))
        at += size
    if at != len(body):
        raise BadAnswer(f"images of {at} bytes in a body of {len(body)}")
    return found


def _image(fields: Head, data: bytes, size: int) -> Encoded:
    format = fields.get("format")
    if len(data) != size or format not in ("png", "webp", "jpeg"):
        raise BadAnswer("an image over the end of its body, or of an unknown format")
    try:
        width, height = size_of(format, data)
    except NotAPicture as error:
        raise BadAnswer(str(error)) from error
    if (fields.get("width"), fields.get("height")) != (width, height):
        raise BadAnswer(f"an image of {width}x{height} that is said to be of another size")
    return Encoded(format, width, height, data)


def _only(images: Sequence[tuple[str, Encoded]], role: str, *, asked: bool) -> Encoded | None:
    found = [picture for r, picture in images if r == role]
    if len(found) > int(asked):
        raise BadAnswer(f"images of role {role} that were not asked for")
    return found[0] if found else None


def _results(said: list[ActionResult], actions: int, images: int) -> list[ActionResult]:
    if len(said) > actions or [r.index for r in said] != list(range(len(said))):
        raise BadAnswer(f"{len(said)} results of {actions} actions, or in no order")
    if any(r.image is not None and not 0 <= r.image < images for r in said):
        raise BadAnswer("a result with an image that is not there")
    return [
        ActionResult(
            index=r.index,
            error=None if r.error is None else _word(r.error),
            detail=_text(r.detail, MOST_DETAIL),
            text=_text(r.text, MAX_CLIPBOARD),
            image=r.image,
        )
        for r in said
    ]


def _state(said: DesktopState) -> DesktopState:
    _whole(said.width, 1, MOST_SIDE)
    _whole(said.height, 1, MOST_SIDE)
    windows = [
        w.model_copy(update={"title": _text(w.title, MOST_TITLE), "program": _text(w.program, MOST_TITLE)})
        for w in said.windows[:MOST_WINDOWS]
    ]
    for number in [said.cursor_x, said.cursor_y, *(n for w in windows for n in (w.x, w.y, w.width, w.height))]:
        _whole(number, -(1 << 16), 1 << 16)
    held = [_text(key, 40) for key in said.held[:MOST_HELD]]
    return said.model_copy(update={"title": _text(said.title, MOST_TITLE), "windows": windows, "held": held})


def _whole(value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadAnswer(f"a number that is not between {least} and {most}")
    return value


def _word(value: object) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else "failed"


def _text(value: object, most: int) -> str:
    """What neither PostgreSQL nor UTF-8 can hold is replaced; the rest is cut."""
    return clean_str(value[:most])[0] if isinstance(value, str) else ""


def _object(text: bytes) -> Head:
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("no JSON") from error
    if not isinstance(value, dict):
        raise BadAnswer("a head that is no object")
    return cast("Head", value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
