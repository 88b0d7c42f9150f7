"""Bodies of what a run asked, as they were kept: downloads for whoever debugs it."""

import asyncio
import io
from typing import Annotated, Literal

from fastapi import Path, Request
from starlette.responses import Response

from service.api.downloads import FALLBACK_TYPE, download_headers, file_answer
from service.domain.errors import Gone, NotFound
from service.store.blobs import BlobStore
from service.store.request_bodies import BodyUnreadable, read_body

Side = Literal["request", "response"]
MOST = 2**31 - 1
Number = Annotated[int, Path(ge=1, le=MOST)]


async def body_answer(request: Request, blobs: BlobStore, blob: str | None, name: str) -> Response:
    """Return the kept body as a file; ``X-Body-Bytes`` is its true size.

    Raises NotFound (none was kept), Gone ``body_gone`` (it was, and cannot be read any more).
    """
    if blob is None:
        raise NotFound("not_found")
    try:
        body = await asyncio.to_thread(read_body, blobs, blob)
    except (BodyUnreadable, NotFound) as error:
        raise Gone("body_gone", "the kept body cannot be read any more") from error
    headers = download_headers(name, f'"{blob}"') | {"X-Body-Bytes": str(body.size)}
    return file_answer(request, io.BytesIO(body.data), len(body.data), FALLBACK_TYPE, headers)
