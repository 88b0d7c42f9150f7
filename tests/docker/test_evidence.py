"""Evidence in real rooms: what each kind of file says, what it hides, and the hostile ones beside sound ones."""

import io
import json
import time
from base64 import b64encode
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo

from service.sandboxes.docker.rooms import EngineRooms
from tests.docker import sample_files as made
from tests.docker.extracting import Extracted, extracted

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


def png(text: str = "", size: tuple[int, int] = (400, 200), **info: str) -> bytes:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((20, 60), text, fill="black", font_size=60)
    notes = PngInfo()
    for name, value in info.items():
        notes.add_text(name, value)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", pnginfo=notes)
    return buffer.getvalue()


def scan(text: str) -> bytes:
    """A PDF whose one page is a picture."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png(text, (900, 300)))).save(buffer, "PDF")
    return buffer.getvalue()


PAGE = b"""<!DOCTYPE html><html><head><title>Offer</title><meta name="author" content="A. Gent">
<style>.gone { display: none } #pale, p.soft { color: #fefefe }</style><script>let score = 3;</script></head>
<body><h1>Our offer</h1><p>We paint <b>houses</b>.</p><p class="gone">secret one</p><p style="font-size:1px">secret two</p>
<p id="pale">secret three</p><p class="soft">secret four</p><div style="background:#000"><p style="color:white">plain to see</p></div>
<p hidden>secret five</p><!-- secret six --><img alt="secret seven" src="data:image/png;base64,%s"><a href="https://x.test/">more</a>
<table><tr><td>1</td><td>2</td></tr></table></body></html>""" % b64encode(png("inlined"))

SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><title>secret title</title>
<rect width="200" height="100" fill="#eee"/><text x="10" y="50">Shown words</text><text x="10" y="80" fill="white">pale words</text>
<text display="none">gone words</text><image href="file:///etc/passwd"/></svg>"""

BOOK = json.dumps(
    {
        "metadata": {"kernelspec": {"name": "python3"}},
        "cells": [
            {"cell_type": "markdown", "source": ["# Analysis\n", "of sales"]},
            {"cell_type": "code", "execution_count": 4, "source": "print(1 + 1)", "outputs": [
                {"output_type": "stream", "text": ["2\n"]},
                {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": b64encode(png("figure")).decode()}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[31mboom\u001b[0m"]},
            ]},
        ],
    }
).encode()  # fmt: skip


async def test_each_kind_says_what_is_in_it(rooms: EngineRooms, tmp_path: Path) -> None:
    files = {
        "note.txt": b"Dear client", "latin.txt": "caf\u00e9".encode("latin-1"), "run.py": b"print('x')\n", "table.csv": b"name;sum\na;1\nb;2\n",
        "a.json": b'{"x": [1]}', "a.jsonl": b'{"x": 1}\n{"x": 2}\n', "page.html": PAGE, "drawing.svg": SVG, "book.ipynb": BOOK,
        "photo.png": png("PHOTO", Comment="secret comment"), "big.jpg": made.picture("jpeg", (2400, 1200)), "moving.gif": made.animation(),
        "report.pdf": made.printed("BT /F1 12 Tf 10 150 Td (First page) Tj ET", "BT /F1 12 Tf 10 150 Td (Second page) Tj 1 1 1 rg 0 -20 Td (white words) Tj ET"),
        "scan.pdf": scan("SCANNED 4711"), "locked.pdf": made.pdf(password="secret"), "a.zip": made.packed({"in/a.txt": b"x" * 10}),
        "a.tgz": made.archive("w:gz"), "feed.xml": b"<a><b>text</b></a>", "unknown.bin": bytes(range(256)), "empty.txt": b"",
        "lie.pdf": b"<html><body>no pdf</body></html>", "half.pdf": made.pdf()[:200],
    }  # fmt: skip
    found = await extracted(rooms, tmp_path, files)
    states = {name: (found[name].kind, found[name].state, found[name].error) for name in files}
    assert states == {
        "note.txt": ("text", "extracted", None), "latin.txt": ("text", "extracted", None), "run.py": ("code", "extracted", None),
        "table.csv": ("csv", "extracted", None), "a.json": ("json", "extracted", None), "a.jsonl": ("jsonl", "extracted", None),
        "page.html": ("html", "extracted", None), "drawing.svg": ("svg", "extracted", None), "book.ipynb": ("ipynb", "extracted", None),
        "photo.png": ("png", "extracted", None), "big.jpg": ("jpeg", "extracted", None), "moving.gif": ("gif", "extracted", None),
        "report.pdf": ("pdf", "extracted", None), "scan.pdf": ("pdf", "extracted", None), "locked.pdf": ("pdf", "failed", "encrypted"),
        "a.zip": ("zip", "extracted", None), "a.tgz": ("gz", "extracted", None), "feed.xml": ("xml", "extracted", None),
        "unknown.bin": ("binary", "listed", None), "empty.txt": ("binary", "listed", None), "lie.pdf": ("html", "extracted", None),
        "half.pdf": ("pdf", "failed", "cannot_open"),
    }  # fmt: skip
    assert "café" in found.text("latin.txt")
    assert found["table.csv"].facts == {"encoding": "utf-8", "rows": 3, "columns": 2}
    assert found["lie.pdf"].notes == ("the name says pdf, the content is html",)
    _check_markup(found)
    _check_pages_and_archives(found)
    _check_pictures(found)


def _check_markup(found: Extracted) -> None:
    seen, hidden = found.text("page.html", "text"), found.text("page.html", "hidden")
    assert "Our offer" in seen
    assert "plain to see" in seen
    assert "| 1" in seen
    assert "secret" not in seen
    assert [
        word for word in ("one", "two", "three", "four", "five", "six", "seven") if f"secret {word}" not in hidden
    ] == []
    assert "let score = 3" in found.text("page.html", "code")
    assert "https://x.test/" in found.text("page.html", "listing")
    assert [(i.source, i.label) for i in found["page.html"].images] == [("embedded", "secret seven")]

    assert "Shown words" in found.text("drawing.svg", "text")
    assert all(word in found.text("drawing.svg", "hidden") for word in ("secret title", "pale words", "gone words"))
    assert [i.source for i in found["drawing.svg"].images] == ["file"]

    assert [(p.kind, p.label) for p in found["book.ipynb"].parts] == [
        ("text", "cell 1 (markdown)"), ("cell", "cell 2 (code, run as [4])"), ("output", "cell 2, stream"),
        ("output", "cell 2, display_data"), ("output", "cell 2, error"),
    ]  # fmt: skip
    assert found["book.ipynb"].parts[-1].text == "boom"
    assert [i.source for i in found["book.ipynb"].images] == ["output"]


def _check_pages_and_archives(found: Extracted) -> None:
    assert "secret comment" in found.text("photo.png", "metadata")
    assert [(i.width, i.height) for i in found["big.jpg"].images] == [(1600, 800)]
    assert len(found["moving.gif"].images) == 4
    assert found["moving.gif"].omitted.images == 1

    assert [p.label for p in found["report.pdf"].parts if p.kind == "page"] == ["page 1", "page 2"]
    assert "white words" in found.text("report.pdf", "hidden")
    assert "Second" not in found.text("report.pdf", "hidden")
    assert "Quarterly report" in found.text("report.pdf", "metadata")
    assert [i.label for i in found["report.pdf"].images] == ["page 1", "page 2"]
    assert "4711" in found.text("scan.pdf", "page")
    assert "OCR, since the pages have no text" in found["scan.pdf"].notes
    assert "in/a.txt" in found.text("a.zip", "listing")
    assert "f2" in found.text("a.tgz", "listing")


def _check_pictures(found: Extracted) -> None:
    images = [i for f in found.document.files for i in f.images]
    assert {i.sha256 for i in images} == set(found.pictures)
    for image in images:
        with Image.open(io.BytesIO(found.pictures[image.sha256])) as opened:
            assert opened.size == (image.width, image.height)
            assert max(opened.size) <= 1600
            assert not opened.getexif()
            assert "Comment" not in opened.info


def _memory(name: str) -> int:
    """Return bytes of this process."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) << 10


def _resting() -> int:
    """Return this process's bytes, and let its peak begin anew there."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


@pytest.mark.fault(71)
async def test_bombs_fail_cleanly_beside_sound_files(rooms: EngineRooms, tmp_path: Path) -> None:
    laughs = made.laughs()
    files = {
        "flood.png": made.pixel_flood(), "laughs.xml": laughs, "laughs.svg": laughs.replace(b"<x>", b"<svg>").replace(b"</x>", b"</svg>"),
        "flat.zip": made.packed({"x": bytes(100 << 20)}), "bomb.gz": made.gzip_bomb(), "deep.docx": made.zip_bomb(),
        "flat.docx": made.packed({"word/document.xml": b" " * (100 << 20), "[Content_Types].xml": b"<Types/>"}), "deep.json": b"[" * 1_000_000,
        "wide.csv": b"1," * 1_000_000 + b"1\n", "long.csv": b"".join(b"row %d,%d\n" % (n, n) for n in range(300_000)),
        "deep.html": b"<div>" * 200_000 + b"bottom", "note.txt": b"sound", "page.pdf": made.printed("BT /F1 12 Tf 10 150 Td (Sound) Tj ET"),
        "inlined.html": b'<img src="data:image/png;base64,%s"><p>words</p>' % b64encode(made.pixel_flood()),
    }  # fmt: skip
    before, started = _resting(), time.monotonic()
    found = await extracted(rooms, tmp_path, files)
    assert time.monotonic() - started < 100
    assert _memory("VmHWM") - before < 150 << 20
    bombs = {f.path.rpartition("/")[2] for f in found.document.files if f.error == "bomb"}
    assert bombs == {"flood.png", "laughs.xml", "laughs.svg", "flat.zip", "flat.docx", "bomb.gz", "deep.json"}
    assert (found["deep.docx"].state, found["deep.docx"].error) == (
        "failed",
        "cannot_open",
    )  # nobody opens the inner ones
    assert {f.state for f in found.document.files if f.error is None} == {"extracted"}
    assert "sound" in found.text("note.txt")
    assert "Sound" in found.text("page.pdf")
    assert "bottom" in found.text("deep.html")
    assert found["inlined.html"].omitted.images == 1
    assert "words" in found.text("inlined.html")
    table = found["long.csv"]
    assert [p.kind for p in table.parts] == ["table", "table"]
    assert table.omitted.rows > 200_000
    assert table.facts["rows"] == 300_000
    assert "row 0,0" in table.parts[0].text
    assert "row 299999,299999" in table.parts[1].text
    assert found["wide.csv"].omitted.chars > 1_500_000
