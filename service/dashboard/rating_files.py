"""One file as a rater's page shows it: text with numbers of lines, tables as tables, pictures, what is wrong with it.

Office files and PDFs are shown as the evidence document has them, so that nothing here ever opens one. Of a file without
such a document (the reference's, the inputs') plain text is read, as far as it is short, and media are left to the
browser; the rest is for download.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.cleaning import clean_text
from service.domain.evidence import EvidenceFile, Omitted, Part
from service.lifecycle.campaigns.showing import Shown, ShownFile

MOST_BYTES = 256 << 10
"""Of a file that is read here."""
MOST_LINES = 5000
MOST_ROWS, MOST_COLUMNS = 500, 60
RUNS = frozenset({"html", "htm", "xhtml", "svg"})
"""Documents that a browser runs: shown in a frame of their own origin."""
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
_TABLES = frozenset({"csv", "tsv"})
_WORDS = (
    "txt md rst log json jsonl xml yaml yml toml ini cfg conf css scss js mjs cjs ts tsx jsx py pyi ipynb java kt c h cc "
    "cpp hpp cs go rs rb php pl lua r jl sh bash ps1 bat sql swift scala vue tex srt vtt gltf obj csproj gradle"
)
_TEXTS = _TABLES | RUNS | frozenset(_WORDS.split(" "))
_CELLS = frozenset({"sheet", "formulas", "differences"})
NAMED = {
    "hidden": "not seen by a reader", "formulas": "formulas", "differences": "differs when calculated anew",
    "metadata": "metadata", "notes": "notes", "output": "output", "listing": "contents",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownPart:
    """Exactly one of ``rows``, ``lines`` and ``text`` is what is shown."""

    kind: str
    label: str = ""
    text: str = ""
    rows: Sequence[Sequence[str]] | None = None
    lines: Sequence[str] | None = None
    more: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    href: str
    label: str
    width: int
    height: int


def extension(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def media(file: ShownFile) -> str | None:
    """Return which element of a page shows the bytes themselves: image, audio, video; null: none."""
    mime = file.mime or ""
    if mime in _PICTURES:
        return "image"
    kind = mime.partition("/")[0]
    return kind if kind in ("audio", "video") else None


def pictures(shown: Shown, file: ShownFile, root: str) -> list[Picture]:
    """Return the pictures that the evidence has of the file, but for the one that the browser shows itself."""
    mine = [i for i in shown.images if i.file == file.n]
    if media(file) == "image":
        mine = [i for i in mine if i.image.source != "file"]
    return [
        Picture(f"{root}/images/{i.n}", shown.names.scrubbed(i.image.label), i.image.width, i.image.height)
        for i in mine
    ]


def is_text(file: ShownFile) -> bool:
    """Whether a file without evidence is worth reading as text."""
    return file.evidence is None and extension(file.path) in _TEXTS


def of_evidence(file: EvidenceFile) -> list[ShownPart]:
    return [_of_part(part, file.kind) for part in file.parts]


def of_text(name: str, data: bytes, size: int) -> list[ShownPart]:
    """Return the beginning of a text file."""
    text = clean_text(data)[0]
    more = f"The first {len(data)} of {size} bytes." if size > len(data) else ""
    ending = extension(name)
    if ending in _TABLES:
        return [_table("table", "", text, _delimiter(text), more)]
    return [_lines("code", "", text, more)]


def left_out(omitted: Omitted) -> str:
    """Return what the evidence does not have of the file, in words; empty: nothing."""
    counts = (
        (omitted.chars, "characters"),
        (omitted.rows, "rows"),
        (omitted.parts, "parts"),
        (omitted.images, "pictures"),
    )
    words = [f"{n} {what}" for n, what in counts if n]
    return f"Not shown here: {', '.join(words)}. The download has all of it." if words else ""


def _of_part(part: Part, kind: str) -> ShownPart:
    if part.kind in _CELLS or (part.kind == "table" and kind not in _TABLES):
        return _cells(part)
    if part.kind == "table":
        return _table(part.kind, part.label, part.text, _delimiter(part.text))
    if part.kind in ("code", "text", "schema"):
        return _lines(part.kind, part.label, part.text)
    return ShownPart(part.kind, part.label, part.text)


def _delimiter(text: str) -> str:
    """Return what is found most often in the first line; a comma where nothing is."""
    first = text[:10_000].partition("\n")[0]
    return max((",", "\t", ";", "|"), key=first.count)


def _cells(part: Part) -> ShownPart:
    """Cells as the evidence has them: tabs between, nothing quoted."""
    lines = part.text.split("\n")
    more = f"The first {MOST_ROWS} of {len(lines)} rows." if len(lines) > MOST_ROWS else ""
    rows = [line.split("\t")[:MOST_COLUMNS] for line in lines[:MOST_ROWS]]
    return ShownPart(part.kind, part.label, rows=rows, more=more)


def _lines(kind: str, label: str, text: str, more: str = "") -> ShownPart:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        more = f"The first {MOST_LINES} of {len(lines)} lines."
    return ShownPart(kind, label, lines=lines[:MOST_LINES], more=more)


def _table(kind: str, label: str, text: str, delimiter: str, more: str = "") -> ShownPart:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if len(rows) == MOST_ROWS:
                more = f"The first {MOST_ROWS} rows."
                break
            rows.append(row[:MOST_COLUMNS])
    except csv.Error:
        return _lines(kind, label, text, more)
    return ShownPart(kind, label, rows=rows, more=more)
