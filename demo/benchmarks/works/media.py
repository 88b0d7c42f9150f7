"""Small files of kinds that need no library: sound, moving pictures, pictures, solids, workbooks. The same bytes each time."""

import io
import math
import struct
import wave
import zipfile
import zlib
from collections.abc import Sequence
from xml.sax.saxutils import escape

Pixel = tuple[int, int, int]
Frame = Sequence[Sequence[Pixel]]
RATE = 8_000
"""Samples a second."""


def tone(notes: Sequence[tuple[float, float]]) -> bytes:
    """Return a WAV file, mono, 16 bit: (hertz, seconds) one after the other; 0 hertz is silence."""
    samples: list[int] = []
    for hertz, seconds in notes:
        count = int(seconds * RATE)
        samples += [int(12_000 * math.sin(2 * math.pi * hertz * i / RATE)) for i in range(count)]
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return made.getvalue()


def movie(frames: Sequence[Frame], per_second: int) -> bytes:
    """Return an AVI file of uncompressed pictures, all of one size, whose width is a multiple of 4."""
    height, width = len(frames[0]), len(frames[0][0])
    size = width * height * 3
    main = struct.pack(
        "<14I", 1_000_000 // per_second, size * per_second, 0, 0x10, len(frames), 0, 1, size, width, height, *[0] * 4
    )
    stream = struct.pack("<4s4s3I8I", b"vids", b"DIB ", 0, 0, 0, 1, per_second, 0, len(frames), size, 0xFFFFFFFF, 0, 0)
    picture = struct.pack("<I2i2H6I", 40, width, height, 1, 24, 0, size, 0, 0, 0, 0)
    head = _list(
        b"hdrl", _chunk(b"avih", main) + _list(b"strl", _chunk(b"strh", stream + bytes(4)) + _chunk(b"strf", picture))
    )
    moving = _list(b"movi", b"".join(_chunk(b"00db", _rows(frame)) for frame in frames))
    places = [4 + i * (size + 8) for i in range(len(frames))]
    index = b"".join(struct.pack("<4s3I", b"00db", 0x10, place, size) for place in places)
    return _chunk(b"RIFF", b"AVI " + head + moving + _chunk(b"idx1", index))


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _list(name: bytes, data: bytes) -> bytes:
    return _chunk(b"LIST", name + data)


def _rows(frame: Frame) -> bytes:
    """Pictures of this kind are stored from the bottom up, blue before red."""
    return b"".join(bytes((b, g, r)) for row in reversed(frame) for r, g, b in row)


def bars(width: int, height: int, shares: Sequence[float], colour: Pixel = (40, 90, 160)) -> list[list[Pixel]]:
    """Return a picture of bars on white, each as high as its share of the picture."""
    paper: Pixel = (255, 255, 255)
    step = width // len(shares)
    high = [height - round(share * height) for share in shares]
    return [
        [
            colour if x % step < step * 3 // 4 and y >= high[min(x // step, len(high) - 1)] else paper
            for x in range(width)
        ]
        for y in range(height)
    ]


def png(frame: Frame) -> bytes:
    """Return a PNG file."""
    height, width = len(frame), len(frame[0])
    raw = b"".join(b"\0" + bytes(part for pixel in row for part in pixel) for row in frame)
    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def box(width: float, depth: float, height: float, name: str = "box") -> bytes:
    """Return a closed box in millimetres as an STL file in text form."""
    corners = [(x, y, z) for x in (0.0, width) for y in (0.0, depth) for z in (0.0, height)]
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    triangles = [t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))]
    lines = [f"solid {name}"]
    for triangle in triangles:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {' '.join(f'{v:g}' for v in corners[i])}" for i in triangle]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, f"endsolid {name}", ""]).encode()


def workbook(rows: Sequence[Sequence[str | float]], sheet: str = "Sheet1") -> bytes:
    """Return a workbook (xlsx) with one sheet of texts and numbers."""
    body = "".join(
        f'<row r="{r}">{"".join(_cell(r, c, v) for c, v in enumerate(row))}</row>' for r, row in enumerate(rows, 1)
    )
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="{escape(sheet)}" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 5, 9, 0, 0)), head + text)
    return made.getvalue()


def _cell(row: int, column: int, value: str | float) -> str:
    place = f"{chr(ord('A') + column)}{row}"
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
