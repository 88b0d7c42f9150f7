"""Texts of prompts by their digests: what agents and judges were asked with."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from service.domain.errors import Expected
from service.store.blobs import BlobStore

MOST_BYTES = 1 << 20
_SERVICE = Path(__file__).resolve().parents[2]


@cache
def shipped() -> dict[str, bytes]:
    """Return the templates that come with this service by sha256."""
    texts = [path.read_bytes() for path in sorted(_SERVICE.glob("**/prompt_texts/**/*")) if path.is_file()]
    return {hashlib.sha256(text).hexdigest(): text for text in texts}


def texts(blobs: BlobStore, digests: Iterable[str], owned: Iterable[str]) -> dict[str, bytes | None]:
    """Return each digest's text: a shipped one, or a blob that the project has (``owned``); null where neither is here."""
    mine = set(owned)
    return {digest: shipped().get(digest) or (_blob(blobs, digest) if digest in mine else None) for digest in digests}


def _blob(blobs: BlobStore, digest: str) -> bytes | None:
    try:
        return blobs.read_bytes(digest, MOST_BYTES)
    except Expected:
        return None
