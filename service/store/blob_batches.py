"""Many small blobs at once: what is slow about a small file is waiting for the disk, and that can be shared."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from service.domain.errors import Invalid
from service.store.blob_files import NewFile, check_digest, install_all, storage_errors, touch

SYNCS_AT_ONCE = 4
"""The journal commits for all who wait; more threads make it no faster."""


def store_many(root: Path, blobs: Mapping[str, bytes]) -> None:
    """See ``BlobStore.store_many``."""
    for sha, data in blobs.items():
        if hashlib.sha256(data).hexdigest() != check_digest(sha):
            raise Invalid("wrong_digest", f"the content announced as {sha} has another digest")
    with storage_errors(), ExitStack() as unfinished:
        files = {sha: _written(root, data, unfinished) for sha, data in blobs.items() if not touch(root, sha)}
        with ThreadPoolExecutor(SYNCS_AT_ONCE) as pool:
            paths = [*pool.map(NewFile.sync, files.values())]
        install_all(root, zip(paths, files, strict=True))


def _written(root: Path, data: bytes, unfinished: ExitStack) -> NewFile:
    file = NewFile(root)
    unfinished.callback(file.discard)
    file.write(data)
    return file
