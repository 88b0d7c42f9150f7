"""A task directory that comes as one archive: each member goes to the content store as it arrives.

Nothing of it is to be seen, and nothing stays behind, unless the whole archive came and makes a task.
"""

import asyncio
from collections.abc import AsyncIterable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from service.api import json_body
from service.archives.contract import ArchiveKind, ArchiveLimits, Reader
from service.archives.reading import reader_for
from service.domain.errors import Invalid
from service.domain.limits import KIB
from service.domain.task_bundle import (
    FOLDERS,
    INSTRUCTION_FILE,
    MAX_TEXT_BYTES,
    TASK_FILE,
    files_below,
    manifest_json,
    refused,
    top_folder,
)
from service.domain.tasks import TaskManifest
from service.lifecycle.staged_members import StagedMembers
from service.store.blob_files import storage_errors
from service.store.blobs import BlobStore
from service.store.staging import StagedFile, Staging

_BATCH = 256 * KIB
"""Bytes that are handed to a thread at once."""
# Of their own: the end of a large zip takes a minute, and everybody else's threads are few.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="archive")
P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call ``work`` in one of the few threads that archives have."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, lambda: work(*args, **options))


async def receive(
    chunks: AsyncIterable[bytes], kind: ArchiveKind, limits: ArchiveLimits, blobs: BlobStore, staging: Staging
) -> dict[str, StagedFile]:
    """Read an archive to its end; return its files by path.

    Raises Invalid (see ``service/archives``), also Invalid("upload_incomplete") when the client went away, and
    Unavailable("storage_full").
    """
    files = StagedMembers(staging)
    with storage_errors(), blobs.scratch() as spool:
        reader = reader_for(kind, files, limits, spool)
        try:
            await _feed(reader, chunks)
        except ClientDisconnect as error:
            raise Invalid("upload_incomplete", "the archive did not arrive as a whole") from error
        await in_thread(reader.finish)
    return files.found


async def _feed(reader: Reader, chunks: AsyncIterable[bytes]) -> None:
    waiting = bytearray()
    async for chunk in chunks:
        waiting += chunk
        if len(waiting) >= _BATCH:
            await in_thread(reader.feed, bytes(waiting))
            waiting.clear()
    await in_thread(reader.feed, bytes(waiting))


def manifest_of(files: dict[str, StagedFile], staging: Staging) -> tuple[TaskManifest, list[StagedFile]]:
    """Return the manifest of a task directory and the files that it names. Blocks.

    Raises Invalid("invalid_task_bundle"), BodyRefused and RequestValidationError as the same manifest in JSON would.
    """
    top = top_folder(files)
    inside = {path.removeprefix(top): file for path, file in files.items()}
    folders: dict[str, list[dict[str, Any]]] = {}
    used: list[StagedFile] = []
    for folder in FOLDERS:
        if folder in inside:
            raise refused([(folder, "is not a directory")])
        below = [(path, inside[whole]) for path, whole in files_below(inside, folder)]
        folders[folder] = [{"path": p, "sha256": f.sha256, "size_bytes": f.size_bytes} for p, f in below]
        used += [file for _, file in below]
    texts = [_text(inside.get(name), staging) for name in (TASK_FILE, INSTRUCTION_FILE)]
    return _parsed(manifest_json(texts[0], texts[1], folders)), used


def _text(file: StagedFile | None, staging: Staging) -> bytes | None:
    if file is None:
        return None
    if file.size_bytes > MAX_TEXT_BYTES:
        return bytes(MAX_TEXT_BYTES + 1)  # refused for its length, whatever it says
    return staging.read(file, MAX_TEXT_BYTES)


def _parsed(manifest: bytes) -> TaskManifest:
    try:
        return TaskManifest.model_validate(json_body.parse(manifest))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**e, "loc": ("body", *e["loc"])} for e in errors]) from error
