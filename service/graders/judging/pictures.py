"""Which pictures of a deliverable a question shows: each once, whole files first."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.domain.evidence import EvidenceDocument, EvidenceImage
from service.graders.contract import EvidenceSource
from service.models.messages import Image

MOST = 8
MOST_BYTES, TOTAL_BYTES = 4 << 20, 12 << 20
"""Of one picture, and of those of one question: what every provider takes."""
_ORDER = ("file", "embedded", "output", "page", "frame")


@dataclass(frozen=True, slots=True)
class Picture:
    file: int
    """Index of its file in the document."""
    label: str
    image: Image


@dataclass(frozen=True, slots=True)
class Pictures:
    shown: tuple[Picture, ...] = ()
    left_out: int = 0


async def pictures_of(source: EvidenceSource, document: EvidenceDocument) -> Pictures:
    """Return up to eight pictures. Raises GraderFault ``evidence_missing``, GraderBusy."""
    distinct = list(_distinct(document))
    shown = [Picture(i, image.label, await _read(source, image)) for i, image in _fitting(distinct)]
    return Pictures(tuple(shown), len(distinct) - len(shown))


def _fitting(found: Sequence[tuple[int, EvidenceImage]]) -> list[tuple[int, EvidenceImage]]:
    taken: list[tuple[int, EvidenceImage]] = []
    total = 0
    for i, image in found:
        if len(taken) < MOST and image.size_bytes <= min(MOST_BYTES, TOTAL_BYTES - total):
            taken.append((i, image))
            total += image.size_bytes
    return taken


def _distinct(document: EvidenceDocument) -> Iterator[tuple[int, EvidenceImage]]:
    every = [(i, image) for i, file in enumerate(document.files) for image in file.images]
    seen: set[str] = set()
    for i, image in sorted(every, key=lambda pair: _ORDER.index(pair[1].source)):
        if image.sha256 not in seen:
            seen.add(image.sha256)
            yield i, image


async def _read(source: EvidenceSource, image: EvidenceImage) -> Image:
    data = await source.image(image.sha256)
    return Image(media_type=image.media_type, data=base64.b64encode(data).decode())
