"""PDF: text in its layout, page by page; pages as pictures; what is written in white or tiny letters; OCR where there is no
text at all. By poppler and tesseract.
"""

import re
from collections import defaultdict
from html import unescape
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.readers import styles
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.programs import Done, run

TEXT_S = 40.0
STEP = 5
"""Pages drawn by one call."""
PAGE_S = 8.0
OCR_PAGES, OCR_S = 12, 20.0
RESERVE_S = 5.0
_FIELD = re.compile(r"^([A-Z][\w ]{1,30}):\s+(.*)$", re.MULTILINE)
_FONT = re.compile(r'<fontspec id="(\d+)" size="(-?\d+)"[^>]{0,300} color="(#[0-9a-fA-F]{6})"')
_TEXT = re.compile(r'<text [^>]{0,200}font="(\d+)"[^>]{0,50}>(.{0,5000}?)</text>')
_PAGE = re.compile(r'<page number="(\d+)"')
_TAGS = re.compile(r"<[^>]{0,500}>")
_FACTS = {
    "Pages": "pages",
    "Page size": "page_size",
    "Producer": "producer",
    "JavaScript": "javascript",
    "Form": "form",
}
_WRITTEN = ("Title", "Subject", "Keywords", "Author", "Creator", "CreationDate", "ModDate")


def read_pdf(path: Path, out: Output) -> None:
    pages = _facts(path, out)
    texts = _texts(path, out)
    has_text = any(text.strip() for text in texts)
    for number, text in enumerate(texts, 1):
        out.part("page", f"page {number}", text)
    if has_text:
        _hidden(path, out)
    page_pictures(path, pages, out)
    if not has_text:
        _ocr(path, pages, out)


def page_pictures(path: Path, pages: int, out: Output) -> None:
    """Give the first pages as pictures, as many as there are places and time for."""
    most = min(pages, out.caps.pages)
    for first in range(1, most + 1, STEP):
        if out.left_s < RESERVE_S + PAGE_S or not out.wants_pictures:
            out.note(f"pages from {first} on are not shown as pictures: no time or no place left")
            out.omit(images=most - first + 1)
            break
        last = min(first + STEP - 1, most)
        for number, drawn in _drawn(path, first, last, out):
            out.picture(f"page {number}", "page", drawn)
            drawn.unlink()
    out.omit(images=pages - most)


def _drawn(path: Path, first: int, last: int, out: Output) -> list[tuple[int, Path]]:
    folder = out.scratch / "pages"
    folder.mkdir(exist_ok=True)
    side = str(out.caps.image_pixels)
    argv = ["pdftoppm", "-f", str(first), "-l", str(last), "-scale-to", side, path, folder / "p"]
    try:
        done = run(argv, out.scratch, timeout_s=min(PAGE_S * STEP, max(1.0, out.left_s - RESERVE_S)))
    except Trouble:
        out.note(f"pages {first} to {last} are not all drawn: they take too long")
    else:
        if done.code != 0:
            out.note(f"pages {first} to {last} are not all drawn: {done.complaint[:200]}")
    found = {int(p.stem.rpartition("-")[2]): p for p in folder.glob("p-*.ppm")}
    return sorted(found.items())


def _facts(path: Path, out: Output) -> int:
    """Return the number of pages. Raises Failed, Trouble."""
    done = run(["pdfinfo", path], out.scratch)
    if "Incorrect password" in done.stderr:
        raise Failed("encrypted", "the document needs a password")
    fields = dict(_FIELD.findall(done.stdout))
    pages = fields.get("Pages", "0").strip()
    if done.code != 0 or not pages.isdecimal() or int(pages) == 0:
        raise Failed("cannot_open", done.complaint or "no pages")
    for name, fact in _FACTS.items():
        if name in fields:
            out.fact(fact, int(pages) if fact == "pages" else fields[name].strip()[:200])
    written = [f"{name}: {fields[name].strip()}" for name in _WRITTEN if fields.get(name, "").strip()]
    out.part("metadata", "", "\n".join(written))
    if "Syntax Error" in done.stderr:
        out.note(f"not sound: {done.complaint[:200]}")
    return int(pages)


def _texts(path: Path, out: Output) -> list[str]:
    done = _poppler(["pdftotext", "-layout", "-enc", "UTF-8", path, out.scratch / "text"], out, "its text")
    text = out.scratch / "text"
    if done is None or not text.exists():
        return []
    with text.open("rb") as file:
        data = file.read(32 << 20)
    out.omit(chars=max(0, text.stat().st_size - len(data)))
    pages = data.decode("utf-8", "replace").split("\f")
    return pages[:-1] if pages and not pages[-1].strip() else pages


def _hidden(path: Path, out: Output) -> None:
    done = _poppler(["pdftohtml", "-xml", "-i", "-q", "-hidden", path, out.scratch / "marked"], out, "its hidden text")
    marked = out.scratch / "marked.xml"
    if done is None or not marked.exists():
        return
    with marked.open("rb") as file:
        text = file.read(16 << 20).decode("utf-8", "replace")
    fonts: dict[str, bool] = {}
    found: defaultdict[str, list[str]] = defaultdict(list)
    page = "?"
    for line in text.splitlines():
        if (match := _PAGE.search(line)) is not None:
            page = match.group(1)
        for number, size, ink in _FONT.findall(line):
            colour = styles.colour(ink.lower())
            fonts[number] = int(size) < 3 or (colour is not None and styles.alike(colour, styles.WHITE))
        for number, words in _TEXT.findall(line):
            if fonts.get(number) and words.strip():
                found[page].append(unescape(_TAGS.sub("", words)))
    for number, words in found.items():
        out.part("hidden", f"page {number}, in white or tiny letters", "\n".join(words))


def _poppler(argv: list[str | Path], out: Output, what: str) -> Done | None:
    try:
        done = run(argv, out.scratch, timeout_s=min(TEXT_S, max(1.0, out.left_s - RESERVE_S)))
    except Trouble:
        out.note(f"{what} could not be read within {TEXT_S:g} s")
        return None
    if done.code != 0:
        out.note(f"{what} could not all be read: {done.complaint[:200]}")
    return done


def _ocr(path: Path, pages: int, out: Output) -> None:
    """Read pages that are pictures: last, and said to be."""
    out.note("OCR, since the pages have no text")
    read = 0
    for number in range(1, min(pages, OCR_PAGES) + 1):
        if out.left_s < RESERVE_S + OCR_S:
            break
        for _, drawn in _drawn(path, number, number, out):
            try:
                done = run(["tesseract", drawn, "stdout", "-l", "eng"], out.scratch, timeout_s=OCR_S)
                out.part("page", f"page {number} (OCR)", done.stdout)
            except Trouble:
                out.note(f"page {number} could not be read within {OCR_S:g} s")
            drawn.unlink()
        read += 1
    if pages > read:
        out.note(f"OCR of the first {read} of {pages} pages only")
        out.omit(parts=pages - read)
