"""Writers whose output is the same bytes each time: xlsx with formulas and their values, docx, pdf, png, sqlite."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import docx
import openpyxl
from openpyxl.styles import Font

STAMP = "2026-01-05T09:00:00Z"
ZIP_DATE = (2026, 1, 5, 9, 0, 0)

Cell = str | int | float
Sheet = Sequence[Sequence[Cell]]


def write_xlsx(path: Path, sheets: Mapping[str, Sheet], values: Mapping[tuple[str, str], float]) -> None:
    """Write sheets; cells that start with '=' are formulas, whose result is ``values[sheet, cell]``."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(list(row))
        for cell in page[1]:
            cell.font = Font(bold=True)
    raw = io.BytesIO()
    book.save(raw)
    files = {f"xl/worksheets/sheet{i}.xml": name for i, name in enumerate(sheets, start=1)}

    def edit(member: str, data: bytes) -> bytes:
        return _with_values(data, files[member], values) if member in files else data

    _rezip(raw, path, edit)


def _with_values(data: bytes, sheet: str, values: Mapping[tuple[str, str], float]) -> bytes:
    # openpyxl writes a formula without its result; spreadsheet programs store both, and readers rely on it.
    text = data.decode()
    for (name, cell), value in values.items():
        if name == sheet:
            pattern = rf'(<c r="{cell}"[^>]*><f>[^<]*</f>)(?:<v\s*/>|<v></v>)'
            text, count = re.subn(pattern, rf"\g<1><v>{value!r}</v>", text)
            if count != 1:
                raise ValueError(f"{sheet}!{cell} is not a formula")
    return text.encode()


def write_docx(path: Path, title: str, paragraphs: Sequence[str], table: Sequence[Sequence[str]]) -> None:
    """Write a title, paragraphs ('# ' starts a heading, '{table}' places the table)."""
    document: Any = docx.Document()
    document.add_heading(title, 0)
    for text in paragraphs:
        if text == "{table}":
            _add_table(document, table)
        elif text.startswith("# "):
            document.add_heading(text[2:], 1)
        else:
            document.add_paragraph(text)
    raw = io.BytesIO()
    document.save(raw)
    _rezip(raw, path, _unchanged)


def _unchanged(_member: str, data: bytes) -> bytes:
    return data


def _add_table(document: Any, rows: Sequence[Sequence[str]]) -> None:
    table = document.add_table(rows=0, cols=len(rows[0]))
    table.style = "Table Grid"
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text


def _rezip(raw: io.BytesIO, path: Path, edit: Callable[[str, bytes], bytes]) -> None:
    """Copy an Office file with a fixed date on every member and in its properties."""
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            data = edit(name, old.read(name))
            if name == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", STAMP.encode(), data)
            info = zipfile.ZipInfo(name, ZIP_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)


def write_pdf(path: Path, pages: Sequence[Sequence[str]]) -> None:
    """Write lines of text in Courier, one list of lines (Latin-1, at most 60) per page."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for i, lines in enumerate(pages):
        stream = _page(lines)
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * i} 0 R"
        bodies.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {resources} >>".encode())
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    path.write_bytes(_assemble(bodies))


def _page(lines: Sequence[str]) -> bytes:
    shown = [re.sub(r"([\\()])", r"\\\1", line) for line in lines]
    body = "\n".join(f"({line}) Tj T*" for line in shown)
    return f"BT /F1 10 Tf 12 TL 50 790 Td\n{body}\nET".encode("latin-1")


def _assemble(bodies: Sequence[bytes]) -> bytes:
    data, offsets = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    tail = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(bodies) + 1, len(data))
    return data + head + table + tail
