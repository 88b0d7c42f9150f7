"""What a request's target says, read once and strictly. Pure."""

import re
from urllib.parse import parse_qsl, unquote

from service.gateway.auth import Refused

MAX_TARGET = 4 << 10
_PATH = re.compile(r"/[A-Za-z0-9._~:@!$&'()*+,;=/-]*", re.ASCII)
# What is decoded twice somewhere, or hides a separator, has no business in a path of ours.
_SUSPECT = re.compile(rb"%(?:2f|5c|2e|25|00)", re.IGNORECASE)
_ESCAPED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
_DOTS = frozenset({".", ".."})


def read_path(raw: bytes, decoded: str) -> str:
    """Return the path, which is what it looks like. Raises Refused (400)."""
    segments = decoded.split("/")[1:]
    odd = not _PATH.fullmatch(decoded) or _SUSPECT.search(raw) or not _DOTS.isdisjoint(segments)
    if len(raw) > MAX_TARGET or odd or "" in segments[:-1]:
        raise Refused(400, "bad_path", "the path is not a plain one")
    return decoded


def read_escaped_path(raw: bytes) -> str:
    """Return the path with its escaped slashes as ``%2f``: parts of a segment, each side of which is a plain path.

    Whoever calls this judges them before they go anywhere. Raises Refused (400).
    """
    if len(raw) > MAX_TARGET:
        raise Refused(400, "bad_path", "the path is not a plain one")
    first, *rest = [piece.decode("ascii", "replace") for piece in _ESCAPED_SLASH.split(raw)]
    read = [_read_piece(first), *(_read_piece(f"/{piece}")[1:] for piece in rest)]
    return "%2f".join(read)


def _read_piece(piece: str) -> str:
    return read_path(piece.encode(errors="replace"), unquote(piece))


def read_query(raw: bytes) -> dict[str, str]:
    """Return the parameters; of a repeated one the last. Raises Refused (400)."""
    if len(raw) > MAX_TARGET:
        raise Refused(400, "bad_query", "the query is too long")
    try:
        return dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=32))
    except ValueError:
        raise Refused(400, "bad_query", "the query cannot be read") from None
