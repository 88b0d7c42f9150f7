"""Many small blobs at once: what is slow about a small file is waiting for the disk, and that can be shared."""

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from service.domain.errors import Invalid
from service.store.blob_files import NewFile, check_digest, install_all, storage_errors, touch

SYNCS_AT_ONCE = 16
"""Of all batches of a process. The journal commits for all who wait; more threads make it no faster."""


@cache
def _syncing(_process: int) -> ThreadPoolExecutor:
    """Its threads are not in a child that this process forks."""
    return ThreadPoolExecutor(SYNCS_AT_ONCE, "sync")


def store_many(root: Path, blobs: Mapping[str, bytes]) -> None:
    """See ``BlobStore.store_many``."""
    for sha, data in blobs.items():
        if hashlib.sha256(data).hexdigest() != check_digest(sha):
            raise Invalid("wrong_digest", f"the content announced as {sha} has another digest")
    with storage_errors(), ExitStack() as unfinished:
        files = {sha: _written(root, data, unfinished) for sha, data in blobs.items() if not touch(root, sha)}
        pool = _syncing(os.getpid())
        syncs = [pool.submit(NewFile.sync, file) for file in files.values()]
        wait(syncs)  # for all: a file must not be closed under a thread that is at it
        install_all(root, zip([sync.result() for sync in syncs], files, strict=True))


def _written(root: Path, data: bytes, unfinished: ExitStack) -> NewFile:
    file = NewFile(root)
    unfinished.callback(file.discard)
    file.write(data)
    return file
