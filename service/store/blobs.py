"""The content store: files by sha256, on one file system shared by control plane and workers (CONTRACTS 8, 10).

A file is durable before anything names it, visible only when whole, and kept for 24 h after its last touch even when
no row refers to it.
"""

import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncIterable, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from service.domain.errors import Invalid, TooLarge
from service.store import blob_files, blob_refs
from service.store.blob_batches import store_many
from service.store.blob_files import CHUNK, check_digest, new_file
from service.store.blob_refs import add_refs, drop_refs, project_has, project_sizes
from service.store.database import Database
from service.store.staging import Staging
from service.store.uploads import Uploads

__all__ = ["BlobStore", "add_refs", "drop_refs", "project_has", "project_sizes"]

_GC_LOCK = "workstead.blobs.gc"


class BlobStore:
    """Blobs below ``root``; made where missing. Any number of processes may use it at once."""

    def __init__(self, root: Path) -> None:
        root.mkdir(mode=0o750, parents=True, exist_ok=True)
        self.root = root.resolve()
        for path in (self.root / "tmp", self.root / "uploads"):
            path.mkdir(mode=0o750, exist_ok=True)
            if path.is_symlink():
                raise NotADirectoryError(f"{path} is a link; the content store follows none")
        self._uploads = Uploads(self.root)

    async def put_stream(
        self, chunks: AsyncIterable[bytes], expected: str | None = None, limit: int | None = None
    ) -> tuple[str, int]:
        """Store what ``chunks`` yield; return (sha256, bytes). Nothing stays behind when it fails.

        Raises TooLarge("blob_too_large") past ``limit`` bytes, Invalid("wrong_digest") when it is not ``expected``,
        Unavailable("storage_full").
        """
        if expected is not None:
            check_digest(expected)
        with new_file(self.root) as file:
            async for chunk in chunks:
                if limit is not None and file.size + len(chunk) > limit:
                    raise TooLarge("blob_too_large", f"more than {limit} bytes")
                await asyncio.to_thread(file.write, chunk)
            if expected is not None and file.digest() != expected:
                raise Invalid("wrong_digest", "the content does not have the digest that was announced")
            return await asyncio.to_thread(file.keep), file.size

    def store(self, fd: int, limit: int) -> tuple[str, int]:
        """Copy at most ``limit`` bytes of the open regular file ``fd``, from its start; durable on return.

        For worker threads (``FileSink``). Raises ValueError if there is more, Unavailable("storage_full").
        """
        with new_file(self.root) as file:
            while data := os.pread(fd, min(CHUNK, limit - file.size + 1), file.size):
                if file.size + len(data) > limit:
                    raise ValueError(f"more than {limit} bytes")
                file.write(data)
            return file.keep(), file.size

    def store_bytes(self, data: bytes) -> tuple[str, int]:
        """Store ``data``; durable on return. Blocks. Raises Unavailable("storage_full")."""
        sha = hashlib.sha256(data).hexdigest()
        if blob_files.touch(self.root, sha):
            return sha, len(data)
        with new_file(self.root) as file:
            file.write(data)
            return file.keep(), file.size

    def store_many(self, blobs: Mapping[str, bytes]) -> None:
        """Store small blobs by their digests, all durable on return. Blocks.

        Raises Invalid("wrong_digest") before anything is kept, Unavailable("storage_full").
        """
        store_many(self.root, blobs)

    def staging(self) -> Staging:
        """Return a context for files that become blobs together or not at all."""
        return Staging(self.root)

    def scratch(self) -> BinaryIO:
        """Return an empty file without a name, for what is too large for memory. Closing it frees its space."""
        return cast("BinaryIO", tempfile.TemporaryFile(dir=self.root / "tmp"))

    async def upload_offset(self, project_id: str, sha: str) -> int:
        """Return how many bytes of an unfinished upload are durable (0: none was begun)."""
        return await asyncio.to_thread(self._uploads.offset, project_id, check_digest(sha))

    async def upload_append(
        self, project_id: str, sha: str, offset: int, chunks: AsyncIterable[bytes], *, total: int
    ) -> bool:
        """Append to an upload of ``total`` bytes; True when it is complete, checked and stored as a blob.

        A broken-off append keeps the bytes that came. Raises Conflict("upload_offset", offset=n) when ``offset`` is
        not where it stands, Conflict("upload_in_progress") while another append runs, TooLarge("blob_too_large") past
        ``total``, Invalid("wrong_digest") (the upload is forgotten), Unavailable("storage_full").
        """
        return await self._uploads.append(project_id, check_digest(sha), offset, chunks, total)

    def path(self, sha: str) -> Path:
        """Return where the blob lies, for engines that mount or link it."""
        check_digest(sha)
        return self.root / sha[:2] / sha[2:]

    def open(self, sha: str) -> BinaryIO:
        """Open it for reading. Raises NotFound("blob_not_found")."""
        return blob_files.open_blob(self.root, sha)

    def exists(self, sha: str) -> bool:
        """Tell whether the blob is there; its 24 hours begin anew."""
        return blob_files.touch(self.root, check_digest(sha))

    def size(self, sha: str) -> int:
        """Return its bytes. Raises NotFound("blob_not_found")."""
        with self.open(sha) as file:
            return os.fstat(file.fileno()).st_size

    def read_bytes(self, sha: str, limit: int = 1 << 20) -> bytes:
        """Return a small blob's content. Raises NotFound("blob_not_found"), TooLarge("blob_too_large")."""
        with self.open(sha) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge("blob_too_large", f"more than {limit} bytes")
        return data

    async def gc(self, db: Database, older_than_s: float = 86_400) -> int:
        """Remove files that no row refers to and nobody touched for ``older_than_s`` seconds; return bytes freed.

        One collector at a time; raises Conflict("lock_held"). Abandoned uploads and temporary files go too.
        """
        freed = 0
        async with db.session_lock(_GC_LOCK, wait_s=1.0) as lost:
            before = time.time() - older_than_s
            freed += await asyncio.to_thread(self._uploads.remove_old, before)
            for number in range(256):
                if lost.is_set():
                    break
                freed += await self._collect(db, f"{number:02x}", before)
        return freed

    async def _collect(self, db: Database, shard_name: str, before: float) -> int:
        old = await asyncio.to_thread(blob_files.old_blobs, self.root, shard_name, before)
        freed = 0
        for start in range(0, len(old), 500):
            some = old[start : start + 500]
            async with db.reading() as tx:
                needed = await blob_refs.referenced(tx, some)
            for sha in some:
                if sha not in needed:
                    freed += await self._remove(db, sha, before)
        return freed

    async def _remove(self, db: Database, sha: str, before: float) -> int:
        """Look again with the shard locked: a ref made since then came after a touch, or has a ref before it."""
        async with db.reading() as tx:
            if await blob_refs.referenced(tx, [sha]):
                return 0
        return await asyncio.to_thread(blob_files.remove_checked, self.root, sha, before)
