"""ETag, If-None-Match and Range: the parts of RFC 9110 that we need."""

import re
from dataclasses import dataclass

from service.domain.errors import Expected, PreconditionFailed, PreconditionRequired

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


class RangeNotSatisfiable(Expected):
    status = 416

    def __init__(self, size: int) -> None:
        super().__init__("range_not_satisfiable", headers={"Content-Range": f"bytes */{size}"})


def revision_tag(revision: int) -> str:
    return f'"{revision}"'


def none_match(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names ``tag`` (weak comparison)."""
    if header is None:
        return False
    tags = {part.strip().removeprefix("W/") for part in header.split(",")}
    return "*" in tags or tag in tags


def check_match(header: str | None, tag: str) -> None:
    """Refuse a change of something that is not as the caller saw it last.

    Raises PreconditionRequired without If-Match, PreconditionFailed where it does not name ``tag`` (strong comparison).
    """
    if header is None:
        raise PreconditionRequired("if_match_missing", "send If-Match with the ETag of what you have seen")
    tags = {part.strip() for part in header.split(",")}
    if not tags & {"*", tag}:
        raise PreconditionFailed("changed_meanwhile", "it is not as you saw it any more: read it again", etag=tag)


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    end: int
    """Exclusive."""

    def __len__(self) -> int:
        return self.end - self.start

    def content_range(self, size: int) -> str:
        return f"bytes {self.start}-{self.end - 1}/{size}"


def byte_range(header: str | None, if_range: str | None, tag: str, size: int) -> ByteRange | None:
    """Return the range that is asked for, or None for the whole. Raises RangeNotSatisfiable.

    Several ranges, other units and malformed headers mean the whole, as does an If-Range that is not ``tag``.
    """
    if header is None or (if_range is not None and if_range.strip() != tag):
        return None
    match = _RANGE.match(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= size or start >= end:
        raise RangeNotSatisfiable(size)
    return ByteRange(start, end)
