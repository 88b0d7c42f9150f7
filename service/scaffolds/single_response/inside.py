"""Builds one file from text inside the sandbox: docx, xlsx, pdf, png. JSON on standard input; prints ``built``.

Uses what the environment has (python-docx, openpyxl, Pillow, LibreOffice, matplotlib); exits 1 where that does not do.
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
MAX_CELLS = 2_000_000
PAGE = (1240, 1754)


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
    """A number where it is one; never a formula that nobody wrote as one."""
    if isinstance(value, str):
        bare = value.strip()
        if NUMBER.match(bare):
            return float(bare) if "." in bare else int(bare)
        return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", value)[:32767]
    return value if value is None or isinstance(value, (bool, int, float)) else json.dumps(value, ensure_ascii=False)


def xlsx(text: str, target: str) -> None:
    import openpyxl

    book: Any = openpyxl.Workbook()
    book.remove(book.active)
    for n, (name, rows) in enumerate(rows_of(text).items()):
        sheet = book.create_sheet(re.sub(r"[\[\]:*?/\\]", " ", name)[:31] or "Sheet%d" % (n + 1))
        for row in rows[: MAX_CELLS // 10]:
            sheet.append([cell(value) for value in row[:1000]])
    book.save(target)


def docx(text: str, target: str) -> None:
    import docx as library

    document = library.Document()
    lines = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text).split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("|") and at + 1 < len(lines) and re.match(r"^\|[\s:|-]+\|?\s*$", lines[at + 1]):
            end = at
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            put_table(document, [row.strip().strip("|").split("|") for i, row in enumerate(lines[at:end]) if i != 1])
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
        pdf_of_pictures(text, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.docx")
        docx(text, source)
        home = "-env:UserInstallation=file://%s/profile" % folder
        argv = [office, home, "--headless", "--convert-to", "pdf", "--outdir", folder, source]
        subprocess.run(argv, check=True, timeout=150, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.copyfile(os.path.join(folder, "source.pdf"), target)


def pages(text: str) -> list[Any]:
    """Plain pages, drawn: the way out where there is no office program."""
    from PIL import Image, ImageDraw, ImageFont

    try:
        font = ImageFont.truetype("DejaVuSans.ttf", 22)
    except OSError:
        font = ImageFont.load_default()
    lines = [piece for line in text.split("\n") for piece in wrapped(line)]
    made: list[Any] = []
    for at in range(0, max(1, len(lines)), 54):
        page = Image.new("RGB", PAGE, "white")
        drawer = ImageDraw.Draw(page)
        for n, line in enumerate(lines[at : at + 54]):
            drawer.text((80, 80 + 30 * n), line, fill="black", font=font)
        made.append(page)
        if len(made) == 500:
            break
    return made


def wrapped(line: str) -> list[str]:
    return [line[i : i + 92] for i in range(0, len(line), 92)] or [""]


def pdf_of_pictures(text: str, target: str) -> None:
    first, *others = pages(text)
    first.save(target, "PDF", save_all=True, append_images=others)


def png(text: str, target: str) -> None:
    if "<svg" in text[:2000]:
        svg(text, target)
    else:
        pages(text)[0].save(target, "PNG")


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
