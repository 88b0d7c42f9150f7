"""The evidence document: what a deliverable says, as text and pictures, with what was left out. Made once per deliverable.

Everything in it comes from the agent and is data, in prompts and pages alike.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

VERSION = "1"
"""Of what makes it; raised whenever the same files could give another document."""
MAX_FILES = 1000
FILE_CHARS = 200_000
"""Most text of one file; head and tail are kept."""
TOTAL_CHARS = 1_500_000
"""Most text of one document."""
FILE_IMAGES, TOTAL_IMAGES = 32, 200
IMAGE_PIXELS = 1600
"""Longest side of a picture in the document; larger ones are made smaller."""
PAGES = 30
"""Most pages of one file that become pictures."""
MAX_PARTS = 2000
"""Of one file."""
MAX_NOTES = 50

Count = Annotated[int, Field(ge=0, le=1 << 53)]
Word = Annotated[str, Field(max_length=64)]
Text = Annotated[str, Field(max_length=FILE_CHARS + 1000)]
Line = Annotated[str, Field(max_length=500)]
PartKind = Literal[
    "text", "code", "table", "sheet", "page", "slide", "notes", "cell", "output", "schema", "message", "listing",
    "metadata", "formulas", "differences", "hidden",
]  # fmt: skip
ImageSource = Literal["file", "page", "embedded", "output", "frame"]


class EvidenceState(StrEnum):
    PENDING = "pending"
    READY = "ready"
    UNAVAILABLE = "unavailable"
    """It could not be made (``cause``): a failure of ours, and so never a score."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Omitted(_Said):
    """What a cap left out."""

    chars: Count = 0
    rows: Count = 0
    parts: Count = 0
    """Sheets, pages, slides, cells, members."""
    images: Count = 0

    @property
    def any(self) -> bool:
        return bool(self.chars or self.rows or self.parts or self.images)


class Part(_Said):
    """A piece of a file's text in its order: the whole of a text file, a page, a sheet, a slide, a table, a cell."""

    kind: PartKind
    """``formulas``: cell, formula, cached and recalculated value. ``differences``: cells whose cached and recalculated
    values differ. ``hidden``: what a reader does not see (white or tiny text, hidden sheets, comments, alt texts)."""
    label: Line = ""
    """Where in the file: ``Sheet1``, ``page 3``."""
    text: Text = ""


class EvidenceImage(_Said):
    label: Line
    """Where in the file: ``page 3``, ``word/media/image1.png``, ``at 12.0 s``."""
    source: ImageSource
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """A blob, PNG or JPEG, decoded and encoded anew by us."""
    media_type: Literal["image/png", "image/jpeg"]
    width: Count
    height: Count
    size_bytes: Count


class EvidenceFile(_Said):
    path: str
    """As in the list of artifacts."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: Count
    kind: Word
    """Reader that took it: ``text``, ``csv``, ``xlsx``, ``pdf`` …; ``binary`` where there is none."""
    state: Literal["extracted", "listed", "failed"]
    """``listed``: by name, size and facts only. ``failed``: the reader could not; ``error`` says why."""
    error: Word | None = None
    """``cannot_open``, ``encrypted``, ``bomb``, ``timeout``, ``malformed``, ``extractor_failed`` …"""
    detail: Line | None = None
    """In words. May quote the file."""
    parts: tuple[Part, ...] = Field(default=(), max_length=MAX_PARTS)
    images: tuple[EvidenceImage, ...] = Field(default=(), max_length=TOTAL_IMAGES)
    omitted: Omitted = Field(default_factory=Omitted)
    notes: tuple[Line, ...] = Field(default=(), max_length=MAX_NOTES)
    """``OCR, since the pages have no text``, ``not recalculated: external links`` …"""
    facts: dict[Word, str | int | float | bool] = Field(
        default_factory=dict[str, str | int | float | bool], max_length=64
    )


class EvidenceDocument(_Said):
    """Of one deliverable, by its digest."""

    version: Word = VERSION
    files: tuple[EvidenceFile, ...] = Field(default=(), max_length=MAX_FILES)
    """In the order of the manifest."""
    not_listed: Count = 0
    """Files beyond the first ones."""
    skipped: tuple[tuple[str, str], ...] = Field(default=(), max_length=MAX_FILES)
    """Path and kind of entries that could not be sealed (links, special files)."""
    omitted: Omitted = Field(default_factory=Omitted)
    """Of all files, and of what the caps of the whole left out."""
