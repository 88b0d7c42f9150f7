"""What a reader is and what it gives. A reader runs in a process of its own with limits of its own, and may do anything
with the one file that it was given: raise, hang, die. It costs that file only.

A reader is a function ``read(path, out)`` that calls ``out.part`` and ``out.picture`` in the file's order and raises
:class:`Failed` (or the checker's ``Trouble``) when the file does not open; what it gave before stays.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from service.evidence.extraction.inside.pictures import Picture, normalised
from service.evidence.extraction.inside.sharing import Piece, share
from service.evidence.integrity.checker.findings import Trouble

PART_KINDS = frozenset(
    {"text", "code", "table", "sheet", "page", "slide", "notes", "cell", "output", "schema", "message", "listing",
     "metadata", "formulas", "differences", "hidden"}
)  # fmt: skip
SOURCES = frozenset({"file", "page", "embedded", "output", "frame"})
Fact = str | int | float | bool


class Failed(Exception):
    """The file cannot be read. ``error`` is one word: ``cannot_open``, ``encrypted``, ``bomb``, ``timeout`` …"""

    def __init__(self, error: str, detail: str = "") -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Caps:
    """As the host gives them (service/domain/evidence.py), and what one file may cost."""

    file_chars: int
    file_images: int
    image_pixels: int
    pages: int
    parts: int
    notes: int
    image_bytes: int = 48 << 20
    """Of all pictures of one file, encoded."""
    file_s: float = 100.0
    """For one file; readers that go on piece by piece look at ``Output.left_s`` and leave the rest out."""


class Converter(Protocol):
    """The office program of the room, ``office.Office(folder)``: one for all files of the room.

    The parent program makes it if any file is of a kind in ``kinds.OFFICE``, calls ``start()`` (which returns at once)
    before the first reader and ``close()`` after the last one; readers call ``convert`` in their own processes, two at once.
    """

    def convert(self, path: Path, to: str, out: "Output") -> Path:
        """Return the file converted to the format ``to`` (an extension), in ``out.scratch``.

        ``path`` has the extension that says what it is. Raises Failed ``cannot_open``, ``timeout``, ``encrypted``,
        ``office_unavailable``.
        """
        ...


@dataclass(slots=True)
class Left:
    """What was left out, counted."""

    chars: int = 0
    rows: int = 0
    parts: int = 0
    images: int = 0


@dataclass(slots=True)
class Output:
    """What is said of one file. Every list of it is bounded: what comes beyond is counted as omitted."""

    kind: str
    """As which the file is read."""
    ext: str
    """Of its name, in lower case; may be empty. Nothing else of the name comes in here."""
    scratch: Path
    """A folder of this file's own."""
    caps: Caps
    office: Converter | None = None
    until: float = 0.0
    """Monotonic seconds."""
    pieces: list[Piece] = field(default_factory=list[Piece])
    pictures: list[Picture] = field(default_factory=list[Picture])
    notes: list[str] = field(default_factory=list[str])
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    left: Left = field(default_factory=Left)

    @property
    def left_s(self) -> float:
        return self.until - time.monotonic()

    def part(self, kind: str, label: str, text: str) -> None:
        """Add text in the file's order. Too much of it loses its middle, which is counted."""
        assert kind in PART_KINDS, kind
        if not text.strip():
            return
        if len(self.pieces) >= self.caps.parts:
            self.omit(parts=1, chars=len(text))
            return
        most = self.caps.file_chars
        self.pieces.append(Piece(kind, label[:500], text).cut(most))
        if sum(p.kept for p in self.pieces) > 8 * most:
            share(self.pieces, 2 * most)

    def picture(self, label: str, source: str, content: bytes | Path) -> bool:
        """Add a picture of any format that Pillow reads, made smaller and encoded anew; False if it is not to be had.

        The same picture is taken once. One that does not decode is a note; one too many is counted.
        """
        assert source in SOURCES, source
        if len(self.pictures) >= self.caps.file_images:
            self.omit(images=1)
            return False
        try:
            made = normalised(label[:500], source, content, self.caps.image_pixels)
        except Trouble as trouble:
            self.note(f"picture {label[:200]} not shown: {trouble.type}")
            self.omit(images=1)
            return False
        if any(p.sha256 == made.sha256 for p in self.pictures):
            return True
        if sum(len(p.data) for p in self.pictures) + len(made.data) > self.caps.image_bytes:
            self.omit(images=1)
            return False
        self.pictures.append(made)
        return True

    @property
    def wants_pictures(self) -> bool:
        """Whether another picture would be taken: making one can be dear."""
        return len(self.pictures) < self.caps.file_images

    def note(self, text: str) -> None:
        if len(self.notes) < self.caps.notes and text not in self.notes:
            self.notes.append(text[:500])

    def fact(self, name: str, value: Fact) -> None:
        if len(self.facts) < 64:
            self.facts[name[:64]] = value[:500] if isinstance(value, str) else value

    def omit(self, *, chars: int = 0, rows: int = 0, parts: int = 0, images: int = 0) -> None:
        """Count what is left out by the reader itself."""
        self.left.chars += chars
        self.left.rows += rows
        self.left.parts += parts
        self.left.images += images


Reader = Callable[[Path, Output], None]
