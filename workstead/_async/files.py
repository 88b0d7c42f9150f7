"""Downloads to disk."""

import os
from pathlib import Path
from typing import BinaryIO

import httpx

from workstead._async.http import AsyncTransport
from workstead.errors import Disconnected, ProtocolError


async def download(http: AsyncTransport, path: str, target: Path) -> int:
    """Write the body to ``target``, which must not exist; return its bytes. An interrupted transfer goes on by Range.

    Raises Problem, Disconnected, FileExistsError. A partial file is removed.
    """
    file = _created(target)
    finished = False
    try:
        with file:
            done = await _transfer(http, path, file)
        finished = True
        return done
    finally:
        if not finished:
            _remove(target)


async def _transfer(http: AsyncTransport, path: str, file: BinaryIO) -> int:
    tried, etag = 0, ""
    while True:
        done = file.tell()
        headers = {"Range": f"bytes={done}-", "If-Range": etag} if done and etag else {}
        try:
            async with http.stream(path, headers=headers) as response:
                etag = response.headers.get("ETag", "")
                _place(file, response, path)
                async for chunk in response.aiter_bytes():
                    file.write(chunk)
            return file.tell()
        except httpx.TransportError as error:
            tried += 1
            if tried > http.retries:
                raise Disconnected(f"{path}: cut after {file.tell()} bytes, {tried} times") from error
            await http.pause(tried)


def _place(file: BinaryIO, response: httpx.Response, path: str) -> None:
    """Put the write position where the answer begins: on from here for the range asked for, else at the start."""
    if response.status_code != 206:
        file.seek(0)
        file.truncate()
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {file.tell()}-"):
        raise ProtocolError(f"{path}: another range than asked for")


def _created(target: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(target, flags, 0o644), "wb")


def _remove(target: Path) -> None:
    target.unlink(missing_ok=True)
