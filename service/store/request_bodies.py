"""Bodies of model requests as they are kept: redacted, compressed, each against the one before it.

A conversation sends itself anew with every turn; compressed against its predecessor a body costs what is new in it
(100 turns of 20 MB in all: 0.6 MB; each on its own: 7.5 MB). Every sixteenth stands alone, so that reading one body
needs at most sixteen blobs. All bodies of a run belong to the run together, and go with it.

A blob is one line of JSON about the body, then a zstd frame.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import zstandard

from service.store.blob_files import check_digest
from service.store.blobs import BlobStore

OWNER = "model_request"
"""Owner kind of the blobs' refs; the owner is the run, or the request where it belongs to none."""
CHAIN = 16
MOST_KEPT = 32 << 20
"""Bytes of one body that can be read back; more is never kept."""
_LEVEL = 3
_BLOB_LIMIT = MOST_KEPT + (1 << 20)


@dataclass(frozen=True, slots=True)
class Base:
    """A kept body that the next one may be compressed against."""

    sha: str
    data: bytes
    chain: Mapping[str, int]
    """Digest → bytes of its blob and of those below it: whoever builds on it needs them all."""


@dataclass(frozen=True, slots=True)
class Body:
    data: bytes
    size: int
    """Of the whole body."""

    @property
    def cut(self) -> bool:
        """Tell whether less was kept than there was."""
        return len(self.data) < self.size


class BodyUnreadable(Exception):
    """A kept body that is not what we write; ``str()`` says why."""


def pack(data: bytes, size: int | None = None, base: Base | None = None) -> bytes:
    """Return the blob of ``data``; ``size`` is the whole body's where ``data`` is its beginning only."""
    about = {
        "v": 1,
        "size": len(data) if size is None else size,
        "kept": len(data),
        "base": base and base.sha,
    }
    head = json.dumps(about, separators=(",", ":")).encode() + b"\n"
    return head + _compressor(data, base).compress(data)


def usable(base: Base | None) -> Base | None:
    """Return ``base`` unless its chain is as long as chains get."""
    return base if base is not None and len(base.chain) < CHAIN else None


def read_body(blobs: BlobStore, sha: str, known: Mapping[str, bytes] | None = None) -> Body:
    """Return a kept body. Blocks. ``known``: digest → data of bodies that the caller has read already.

    Raises NotFound("blob_not_found"), BodyUnreadable.
    """
    known = known or {}
    chain: list[tuple[dict[str, Any], bytes]] = []
    wanted: str | None = check_digest(sha)
    while wanted is not None and not (chain and wanted in known):
        if len(chain) == CHAIN:
            raise BodyUnreadable("its chain has no end")
        head, _, frame = blobs.read_bytes(wanted, _BLOB_LIMIT).partition(b"\n")
        about = _about(head)
        chain.append((about, frame))
        wanted = about["base"]
    data = known[wanted] if wanted is not None else b""
    for about, frame in reversed(chain):
        data = _decompress(frame, data if about["base"] else b"", about["kept"])
    return Body(data, chain[0][0]["size"])


def _about(head: bytes) -> dict[str, Any]:
    try:
        about: Any = json.loads(head)
        if not (about["v"] == 1 and 0 <= about["kept"] <= min(about["size"], MOST_KEPT)):
            raise ValueError("odd figures")
        if about["base"] is not None:
            check_digest(about["base"])
    except (ValueError, KeyError, TypeError) as error:
        raise BodyUnreadable(str(error)) from error
    return about


def _compressor(data: bytes, base: Base | None) -> zstandard.ZstdCompressor:
    if base is None:
        return zstandard.ZstdCompressor(level=_LEVEL)
    # The window must reach back over the whole predecessor.
    reach = max(20, (len(data) + len(base.data)).bit_length())
    parameters = zstandard.ZstdCompressionParameters(compression_level=_LEVEL, window_log=reach)
    return zstandard.ZstdCompressor(dict_data=_dictionary(base.data), compression_params=parameters)


def _decompress(frame: bytes, base: bytes, kept: int) -> bytes:
    if kept == 0:
        return b""
    known = _dictionary(base) if base else None
    try:
        data = zstandard.ZstdDecompressor(dict_data=known, max_window_size=1 << 27).decompress(
            frame, max_output_size=kept
        )
    except zstandard.ZstdError as error:
        raise BodyUnreadable(str(error)) from error
    if len(data) != kept:
        raise BodyUnreadable("it is not as long as it was")
    return data


def _dictionary(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
