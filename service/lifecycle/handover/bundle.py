"""The zip of an export: each file with its digest, looked through for leaks while it is written."""

import hashlib
import zipfile
from collections.abc import Iterable
from typing import Any, BinaryIO

from service.domain.leaks import Scan

MANIFEST = "manifest.json"
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""Time of every member: the same content is the same file."""


class Bundle:
    """Files in the order in which they come. Nothing of it is kept in memory but their names and digests."""

    def __init__(self, out: BinaryIO, scan: Scan) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=True)
        self._scan = scan
        self.files: list[dict[str, Any]] = []
        """Path, bytes and sha256 of each."""

    def add(self, path: str, pieces: Iterable[bytes], *, text: bool = True) -> None:
        """Write a file. ``text``: its content is looked through, piece by piece; file names always are."""
        digest, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(path, _OLDEST)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
        self._scan.file(path, None)
        with self._zip.open(info, "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)
                digest.update(piece)
                size += len(piece)
                if text:
                    self._scan.file(path, piece.decode())
        self.files.append({"path": path, "bytes": size, "sha256": digest.hexdigest()})

    def end(self) -> None:
        self._zip.close()
