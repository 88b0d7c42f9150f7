"""Real files of the formats that office work comes in, whole and broken, made by real libraries."""

import gzip
import io
import sqlite3
import struct
import tarfile
import wave
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import docx
import openpyxl
import pypdf
from PIL import Image


def book(rows: int = 3) -> bytes:
    made = openpyxl.Workbook()
    sheet = made.create_sheet("Second")
    for row in range(rows):
        sheet.append([row, f"row {row}", row * 1.5])
    return _saved(made.save)


def letter() -> bytes:
    made = docx.Document()
    made.add_heading("Report", 1)
    table = made.add_table(2, 2)
    table.cell(0, 0).text = "x"
    return _saved(made.save)


def slides() -> bytes:
    """No library at hand writes them; these are the parts that the format demands."""
    return packed(
        {
            "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "ppt/presentation.xml": b'<p:presentation xmlns:p="urn:p"><p:sldIdLst><p:sldId/><p:sldId/></p:sldIdLst></p:presentation>',
            "ppt/slides/slide1.xml": b'<p:sld xmlns:p="urn:p"/>',
        }
    )


def open_document() -> bytes:
    return packed({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet", "content.xml": b'<o:d xmlns:o="urn:o"><o:table/></o:d>'}, zipfile.ZIP_STORED)  # fmt: skip


def pdf(pages: int = 3, password: str | None = None) -> bytes:
    writer = pypdf.PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 100)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def printed(*pages: str) -> bytes:
    """Pages of content operators, in Helvetica as F1."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids: list[int] = []
    for content in pages:
        kids.append(len(objects) + 1)
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents {len(objects) + 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        objects += [page, f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"]
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(f'{k} 0 R' for k in kids)}] /Count {len(kids)} >>"
    objects.append("<< /Title (Quarterly report) /Author (Nobody) >>")
    body, places = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + end.encode()


def picture(format: str, size: tuple[int, int] = (120, 80)) -> bytes:
    image = Image.effect_noise(size, 60).convert("RGB")
    return _saved(lambda file: image.save(file, format))


def animation() -> bytes:
    frames = [Image.new("RGB", (20, 20), (n * 40, 0, 0)) for n in range(5)]
    return _saved(lambda file: frames[0].save(file, "GIF", save_all=True, append_images=frames[1:]))


def sound(seconds: int = 2) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(2 * 8000 * seconds))
    return buffer.getvalue()


def database(folder: Path) -> bytes:
    path = folder / "made.sqlite"
    base = sqlite3.connect(path)
    base.execute("create table t (x)")
    base.executemany("insert into t values (?)", [(n,) for n in range(5000)])
    base.commit()
    base.close()
    return path.read_bytes()


def archive(mode: Literal["w", "w:gz", "w:xz"]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as made:
        for n in range(3):
            entry = tarfile.TarInfo(f"f{n}")
            entry.size = 5000
            made.addfile(entry, io.BytesIO(bytes(5000)))
    return buffer.getvalue()


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return buffer.getvalue()


def pixel_flood(side: int = 30_000) -> bytes:
    """A PNG of one colour: 900 million pixels in about a hundred kilobytes."""
    line = zlib.compressobj(9)
    row = b"\x00" + bytes(-(-side // 8))
    body = b"".join(line.compress(row) for _ in range(side)) + line.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def zip_bomb(deep: int = 10) -> bytes:
    inner = packed({"x": bytes(80 << 20)})
    for _ in range(deep):
        inner = packed({"word/document.xml": inner, "[Content_Types].xml": b"<Types/>"})
    return inner


def gzip_bomb() -> bytes:
    return gzip.compress(bytes(100 << 20), 9)


def laughs() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{entities}]><x>&l9;</x>'.encode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()
