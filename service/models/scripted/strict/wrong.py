"""How a check says no, and what all have in common."""

from collections.abc import Collection, Mapping
from typing import Any

from service.models.scripted.values import from_base64, text

_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


class Wrong(Exception):
    """``str()`` is the provider's message."""


def demand(holds: object, message: str) -> None:
    """Raises Wrong."""
    if not holds:
        raise Wrong(message)


def check_picture(media_type: object, data: object, at: str, allowed: Collection[str] = tuple(_BEGINNINGS)) -> None:
    """Raises Wrong: not base64 of a picture of an allowed type."""
    demand(media_type in allowed, f"{at}: media type {media_type!r} is not supported")
    try:
        decoded = from_base64(text(data))
    except ValueError as error:
        raise Wrong(f"{at}: invalid base64 data") from error
    demand(decoded.startswith(_BEGINNINGS[str(media_type)]), f"{at}: the data is no {media_type}")


def only(entry: Mapping[str, Any], known: Collection[str], at: str) -> None:
    """Raises Wrong: a field that the API does not know."""
    for name in entry:
        demand(name in known, f"{at}.{name}: extra inputs are not permitted")
