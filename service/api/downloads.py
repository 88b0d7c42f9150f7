"""Files that agents made, as downloads that can never run on our origin.

Always an attachment, never sniffed, in a CSP sandbox with an opaque origin, and with a type from a short list.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import BinaryIO
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from service.api.conditional import byte_range, none_match

CHUNK = 256 << 10
FALLBACK_TYPE = "application/octet-stream"
SAFE_TYPES = frozenset(
    {
        "application/gzip", "application/json", "application/msword", "application/pdf", "application/zip",
        "application/vnd.ms-excel", "application/vnd.ms-powerpoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/x-tar", "application/x-xz", "application/zstd", "audio/mpeg", "audio/ogg", "audio/wav",
        "image/bmp", "image/gif", "image/jpeg", "image/png", "image/tiff", "image/webp",
        "text/csv", "text/plain", "video/mp4", "video/webm",
    }
)  # fmt: skip
"""No type that a browser might run: HTML, SVG, XML and scripts are octet streams."""

_UNSAFE_ASCII = re.compile(r"[^A-Za-z0-9 !#$&()+,\-.;=@\[\]^_`{}~]")


def safe_type(mime: str | None) -> str:
    if mime not in SAFE_TYPES:
        return FALLBACK_TYPE
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime


def disposition(name: str) -> str:
    """Return an RFC 6266 Content-Disposition: an ASCII fallback and the exact name in UTF-8, percent-encoded."""
    fallback = _UNSAFE_ASCII.sub("_", name)[:120] or "download"
    return f"attachment; filename=\"{fallback}\"; filename*=UTF-8''{quote(name[-255:], safe='', errors='replace')}"


def download_headers(name: str, tag: str | None = None) -> dict[str, str]:
    headers = {
        "Content-Disposition": disposition(name),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "private, no-cache",
    }
    return headers if tag is None else headers | {"ETag": tag}


async def read_part(file: BinaryIO, start: int, length: int) -> AsyncIterator[bytes]:
    """Yield ``length`` bytes of ``file`` from ``start`` and close it. Files that cannot seek are read up to there."""
    try:
        await asyncio.to_thread(_skip_to, file, start)
        while length > 0:
            piece = await asyncio.to_thread(file.read, min(CHUNK, length))
            if not piece:
                return
            length -= len(piece)
            yield piece
    finally:
        file.close()


def _skip_to(file: BinaryIO, start: int) -> None:
    if file.seekable():
        file.seek(start)
        return
    while start > 0:
        piece = file.read(min(CHUNK, start))
        if not piece:
            return
        start -= len(piece)


def file_answer(request: Request, file: BinaryIO, size: int, mime: str, headers: Mapping[str, str]) -> Response:
    """Answer with ``file`` or the part of it that Range asks for; the file is closed in any case."""
    tag = headers.get("ETag", "")
    try:
        if tag and none_match(request.headers.get("if-none-match"), tag):
            file.close()
            return Response(status_code=304, headers={"ETag": tag, "Cache-Control": headers["Cache-Control"]})
        wanted = byte_range(request.headers.get("range"), request.headers.get("if-range"), tag, size)
    except BaseException:
        file.close()
        raise
    extra = {**headers, "Accept-Ranges": "bytes", "Content-Type": mime}
    start, length, status = 0, size, 200
    if wanted is not None:
        start, length, status = wanted.start, len(wanted), 206
        extra["Content-Range"] = wanted.content_range(size)
    extra["Content-Length"] = str(length)
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, headers=extra)
    return StreamingResponse(read_part(file, start, length), status, extra)
