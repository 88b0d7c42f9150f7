"""Media types by signature."""

import io
import zipfile

import pytest

from service.sandboxes.docker.signatures import HEAD_BYTES, TAIL_BYTES, media_type

OFFICE = "application/vnd.openxmlformats-officedocument."


def office(*members: str, filler: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("[Content_Types].xml", "x" * filler)
        for member in members:
            file.writestr(member, "x")
    return out.getvalue()


CASES = [
    ("a.bin", b"%PDF-1.7", "application/pdf"),
    ("a.docx", office("word/document.xml"), OFFICE + "wordprocessingml.document"),
    ("a.xlsx", office("xl/workbook.xml", filler=20_000), OFFICE + "spreadsheetml.sheet"),
    ("a.pptx", office("ppt/presentation.xml"), OFFICE + "presentationml.presentation"),
    ("a.pdf", office("readme"), "application/zip"),
    ("a.txt", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ("a.txt", b"XXXX\x00\x00\x00\x00WEBPVP8 ", None),
    ("a.csv", b"a,b\n1,2\n", "text/csv"),
    ("a", "grüße".encode() * 2000, "text/plain"),
    ("a.json", b"{}", "application/json"),
    ("a.html", b"<script>", "text/html"),
    ("a.png", b"<script>", "text/plain"),
    ("a.db", b"SQLite format 3\x00", "application/vnd.sqlite3"),
    ("a", b"", None),
    ("a", b"\xff\x00\xfe", None),
]


@pytest.mark.parametrize(("name", "body", "expected"), CASES)
def test_types(name: str, body: bytes, expected: str | None) -> None:
    assert media_type(name, body[:HEAD_BYTES], body[-TAIL_BYTES:]) == expected
