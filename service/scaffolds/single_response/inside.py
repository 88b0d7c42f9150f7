"""Builds one file from text inside the sandbox: docx, xlsx, pdf, png. JSON on standard input; prints ``built``.

Uses what the environment has (python-docx, openpyxl, Pillow, LibreOffice); exits 1 where that does not do, or where the
file would not hold the whole text: nothing is left out silently.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, cast

HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
BULLET = re.compile(r"^\s*[-*+]\s+(.*)$")
NUMBERED = re.compile(r"^\s*\d+[.)]\s+(.*)$")
NUMBER = re.compile(r"^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$")
MARKS = re.compile(r"(\*\*|__|`)(.+?)\1")
UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold."""
MAX_CELLS, MAX_COLUMNS, MAX_CHARS = 500_000, 16_384, 32_767
MAX_PARAGRAPHS = 20_000
"""python-docx needs minutes for more."""
MAX_PRECISE = 10**15
"""Spreadsheets keep 15 digits of a number."""
PAGE = (1240, 1754)
LINE, MARGIN = 30, 80
MAX_PAGES, MAX_PICTURES, MAX_HEIGHT = 5000, 200, 20_000
COLUMNS, ROWS = 80, 60
"""Of a PDF page of plain text."""


def rows_of(text: str) -> dict[str, list[list[Any]]]:
    """Sheets by name, from JSON ({sheet: rows}, rows, or objects) or CSV."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        sample = text[:4096]
        delimiter = (
            "\t" if sample.count("\t") > sample.count(",") else ";" if sample.count(";") > sample.count(",") else ","
        )
        return {"Sheet1": [list(row) for row in csv.reader(io.StringIO(text), delimiter=delimiter)]}
    sheets = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if sheets and all(isinstance(rows, list) for rows in sheets.values()):
        return {name: table(rows) for name, rows in sheets.items()}
    return {"Sheet1": table(cast("list[Any]", value) if isinstance(value, list) else [value])}


def table(rows: list[Any]) -> list[list[Any]]:
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(key for row in rows for key in row))
        return [names, *[[row.get(name) for name in names] for row in rows]]
    return [row if isinstance(row, list) else [row] for row in rows]


def cell(value: Any) -> Any:
    """A number where a spreadsheet can hold it as written, otherwise text."""
    if isinstance(value, str):
        bare = value.strip()
        if NUMBER.match(bare):
            return float(bare) if "." in bare else int(bare)
        return UNSHOWN.sub("", value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if abs(value) < MAX_PRECISE else str(value)
    return value if value is None or isinstance(value, bool) else UNSHOWN.sub("", json.dumps(value, ensure_ascii=False))


def xlsx(text: str, target: str) -> None:
    import openpyxl

    book: Any = openpyxl.Workbook(write_only=True)
    left = MAX_CELLS
    for n, (name, rows) in enumerate(rows_of(text).items()):
        sheet = book.create_sheet(sheet_name(name) or "Sheet%d" % (n + 1))
        for row in rows:
            left -= len(row)
            if left < 0 or len(row) > MAX_COLUMNS:
                raise ValueError("too many cells")
            sheet.append([typed(sheet, cell(value)) for value in row])
    book.save(target)


def sheet_name(name: str) -> str:
    return re.sub(r"[\[\]:*?/\\]", " ", UNSHOWN.sub("", name)).strip("'")[:31]


def typed(sheet: Any, value: Any) -> Any:
    """Text stays text: what begins with ``=`` came from a model, and a formula would act on who opens the file."""
    from openpyxl.cell import WriteOnlyCell

    if isinstance(value, str):
        if len(value) > MAX_CHARS:
            raise ValueError("a cell is too long")
        if value.startswith("="):
            made = WriteOnlyCell(sheet, value)
            made.data_type = "s"
            return made
    return value


def docx(text: str, target: str) -> None:
    import docx as library

    document = library.Document()
    lines = UNSHOWN.sub("", text).split("\n")
    if len(lines) > MAX_PARAGRAPHS:
        raise ValueError("too many paragraphs")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("|") and at + 1 < len(lines) and re.match(r"^\|[\s:|-]+\|?\s*$", lines[at + 1]):
            end = at
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            put_table(document, [columns(row) for i, row in enumerate(lines[at:end]) if i != 1])
            at = end
            continue
        put_line(document, line)
        at += 1
    document.save(target)


def put_table(document: Any, rows: list[list[str]]) -> None:
    width = max(len(row) for row in rows)
    made = document.add_table(rows=0, cols=width)
    made.style = "Table Grid"
    for row in rows:
        cells = made.add_row().cells
        for n, value in enumerate(row):
            cells[n].text = MARKS.sub(r"\2", value.strip())


def columns(row: str) -> list[str]:
    return [value.replace("\\|", "|") for value in re.split(r"(?<!\\)\|", re.sub(r"^\||(?<!\\)\|$", "", row.strip()))]


def put_line(document: Any, line: str) -> None:
    heading, bullet, numbered = HEADING.match(line), BULLET.match(line), NUMBERED.match(line)
    if heading:
        document.add_heading(MARKS.sub(r"\2", heading[2]), min(len(heading[1]), 4))
    elif bullet or numbered:
        found = bullet or numbered
        assert found is not None
        runs(document.add_paragraph(style="List Bullet" if bullet else "List Number"), found[1])
    elif line.strip():
        runs(document.add_paragraph(), line)


def runs(paragraph: Any, text: str) -> None:
    at = 0
    for found in MARKS.finditer(text):
        paragraph.add_run(text[at : found.start()])
        paragraph.add_run(found[2]).bold = found[1] != "`"
        at = found.end()
    paragraph.add_run(text[at:])


def pdf(text: str, target: str) -> None:
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        plain_pdf(text, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.docx")
        docx(text, source)
        home = "-env:UserInstallation=file://%s/profile" % folder
        argv = [office, home, "--headless", "--convert-to", "pdf", "--outdir", folder, source]
        subprocess.run(argv, check=True, timeout=150, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.copyfile(os.path.join(folder, "source.pdf"), target)


def plain_pdf(text: str, target: str) -> None:
    """The way out where there is no office program: pages of text in a font that every reader has."""
    lines = lines_of(text, COLUMNS)
    try:
        encoded = [line.encode("cp1252") for line in lines]
    except UnicodeEncodeError:
        pdf_of_pictures(text, target)
        return
    sheets = [encoded[at : at + ROWS] for at in range(0, max(1, len(encoded)), ROWS)]
    if len(sheets) > MAX_PAGES:
        raise ValueError("too many pages")
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(sheets), kids),
        font,
    ]
    for n, sheet in enumerate(sheets):
        drawn = b"BT /F1 10 Tf 12 TL 57 780 Td\n" + b"".join(b"(%s) Tj T*\n" % escaped(line) for line in sheet) + b"ET"
        fields = b"/MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R" % (5 + 2 * n)
        objects.append(b"<< /Type /Page /Parent 2 0 R %s >>" % fields)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    with open(target, "wb") as file:
        file.write(pdf_file(objects))


def escaped(line: bytes) -> bytes:
    return re.sub(rb"([\\()])", rb"\\\1", line)


def pdf_file(objects: list[bytes]) -> bytes:
    made = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for n, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (n, body)
    table = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(made)


def lines_of(text: str, columns: int) -> list[str]:
    lines = UNSHOWN.sub("", text).expandtabs(4).replace("\r", "").split("\n")
    return [line[at : at + columns] for line in lines for at in range(0, max(1, len(line)), columns)]


def picture(lines: list[str], height: int) -> Any:
    from PIL import Image, ImageDraw, ImageFont

    # One byte a pixel: hundreds of pages must fit into a small sandbox.
    page = Image.new("L", (PAGE[0], height), "white")
    font = ImageFont.truetype("DejaVuSans.ttf", 22)
    drawer = ImageDraw.Draw(page)
    for n, line in enumerate(lines):
        drawer.text((MARGIN, MARGIN + LINE * n), line, fill="black", font=font)
    return page


def pdf_of_pictures(text: str, target: str) -> None:
    lines, rows = lines_of(text, 92), 54
    if len(lines) > rows * MAX_PICTURES:
        raise ValueError("too many pages")
    for at in range(0, len(lines), rows):
        # One after the other: all of them at once would need a gigabyte.
        picture(lines[at : at + rows], PAGE[1]).convert("1").save(target, "PDF", append=at > 0)


def png(text: str, target: str) -> None:
    if "<svg" in text[:2000]:
        svg(text, target)
        return
    lines = lines_of(text, 92)
    height = max(PAGE[1], 2 * MARGIN + LINE * len(lines))
    if height > MAX_HEIGHT:
        raise ValueError("too long for a picture")
    picture(lines, height).save(target, "PNG")


def svg(text: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.svg")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        for argv in converters(source, target, folder):
            if (
                shutil.which(argv[0])
                and subprocess.run(argv, timeout=150, stdout=subprocess.DEVNULL, check=False).returncode == 0
            ):
                made = os.path.join(folder, "source.png")
                if os.path.exists(made):
                    shutil.copyfile(made, target)
                return
    raise RuntimeError("nothing here draws SVG")


def converters(source: str, target: str, folder: str) -> list[list[str]]:
    home = "-env:UserInstallation=file://%s/profile" % folder
    return [
        ["rsvg-convert", "-o", target, source],
        ["inkscape", source, "-o", target],
        ["soffice", home, "--headless", "--convert-to", "png", "--outdir", folder, source],
    ]


def main() -> None:
    request = json.load(sys.stdin)
    path = os.path.join(os.environ.get("WORKSPACE") or "/workspace", "output", request["path"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    made = path + ".new"
    builders = {".docx": docx, ".xlsx": xlsx, ".pdf": pdf, ".png": png}
    builders[os.path.splitext(path)[1].lower()](request["text"], made)
    os.replace(made, path)
    sys.stdout.write("built")


if __name__ == "__main__":
    main()
