"""What a run met and said, as texts to look through: each with the place it is of, bounded in size."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from service.domain.contamination import texts_of_json
from service.domain.errors import NotFound, TooLarge
from service.domain.evidence import EvidenceDocument
from service.store.blobs import BlobStore
from service.store.events import Event
from service.store.request_bodies import BodyUnreadable, read_body
from service.store.rows import ArtifactRow
from service.store.rows_requests import ModelRequestRow

MOST_BYTES = 256 << 20
"""Of one run's texts; what is beyond is not looked at, and the scan says so."""
FILE_BYTES = 8 << 20
"""Of one delivered or hidden file."""
_KEPT_BODIES = 4
"""Bodies that the next ones may be compressed against."""


@dataclass(slots=True)
class Budget:
    """Bytes that may still be looked at."""

    left: int = MOST_BYTES
    used: int = 0
    cut: bool = False

    def take(self, size: int) -> bool:
        """Tell whether ``size`` more bytes may be read."""
        if size > self.left:
            self.cut = True
            return False
        self.left -= size
        self.used += size
        return True


@dataclass(slots=True)
class Bodies:
    """Bodies of model requests, each conversation's later ones read with the help of its earlier ones. Blocks."""

    blobs: BlobStore
    budget: Budget
    known: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def texts(self, requests: list[ModelRequestRow]) -> Iterator[tuple[str, str]]:
        for row in requests:
            for blob, what in ((row.request_blob, "model request"), (row.response_blob, "model answer")):
                data = None if blob is None else self._read(blob)
                if data is not None:
                    yield f"{what} {row.n}", texts_of_json(data.decode(errors="replace"))

    def _read(self, sha: str) -> bytes | None:
        try:
            body = read_body(self.blobs, sha, self.known)
        except (NotFound, TooLarge, BodyUnreadable):
            self.budget.cut = True
            return None
        self.known[sha] = body.data
        while len(self.known) > _KEPT_BODIES:
            self.known.pop(next(iter(self.known)))
        self.budget.cut |= body.cut
        return body.data if self.budget.take(len(body.data)) else None


def event_texts(events: list[Event], budget: Budget) -> Iterator[tuple[str, str]]:
    for event in events:
        text = texts_of_json(json.dumps(event.payload, ensure_ascii=False))
        if budget.take(len(text)):
            yield f"event {event.seq}", text


def delivered_texts(
    blobs: BlobStore, files: list[ArtifactRow], document: EvidenceDocument | None, budget: Budget
) -> Iterator[tuple[str, str]]:
    """Yield the text files of a deliverable, and what its evidence document, where there is one, says of the others."""
    for file in files:
        if file.sha256 is not None and (file.mime or "").startswith(("text/", "application/json")):
            text = file_text(blobs, file.sha256, budget)
            if text is not None:
                yield f"deliverable {file.path}", text
    for found in () if document is None else document.files:
        text = "\n".join(part.text for part in found.parts)
        if budget.take(len(text)):
            yield f"deliverable {found.path}", text


def file_text(blobs: BlobStore, sha: str, budget: Budget) -> str | None:
    """Return a stored text; null where it is too large, gone, or no text. Blocks."""
    try:
        if not budget.take(min(blobs.size(sha), FILE_BYTES + 1)):
            return None
        data = blobs.read_bytes(sha, FILE_BYTES)
    except NotFound:
        return None
    except TooLarge:
        budget.cut = True
        return None
    return None if b"\0" in data[:4096] else data.decode(errors="replace")


def hidden_text(blobs: BlobStore, sha: str, budget: Budget) -> str | None:
    """As :func:`file_text`; a JSON file gives its strings, since that is what a copy of it would be written as."""
    text = file_text(blobs, sha, budget)
    return None if text is None else texts_of_json(text)


def seen_texts(instruction: str, visible: Mapping[str, str | None]) -> list[str]:
    return [instruction, *(text for text in visible.values() if text is not None)]
