"""Which part of a blob a request carries: the first byte's place and the blob's size."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.domain.errors import Invalid

_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)\Z")


@dataclass(frozen=True, slots=True)
class UploadPart:
    offset: int
    total: int
    """Bytes of the whole blob."""


async def _upload_part(request: Request) -> UploadPart:
    """Read Upload-Offset and Upload-Length, else Content-Range, else Content-Length. Raises Invalid."""
    offset, total = _content_range(request.headers.get("content-range"))
    offset = _number(request, "upload-offset", offset)
    length = _number(request, "content-length", None)
    total = _number(request, "upload-length", total)
    offset = offset or 0
    if total is None:
        if length is None:
            raise Invalid("upload_length_missing", "the size follows from none of Upload-Length, Content-Length")
        total = offset + length
    return UploadPart(offset, total)


Part = Annotated[UploadPart, Depends(_upload_part)]


def _number(request: Request, name: str, default: int | None) -> int | None:
    text = request.headers.get(name)
    if text is None:
        return default
    if not _NUMBER.match(text):
        raise Invalid("bad_upload_header", f"{name} is a number of bytes")
    return int(text)


def _content_range(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    match = _CONTENT_RANGE.match(text)
    if match is None or int(match[2]) < int(match[1]):
        raise Invalid("bad_content_range", "Content-Range is bytes <first>-<last>/<size or *>")
    return int(match[1]), None if match[3] == "*" else int(match[3])
