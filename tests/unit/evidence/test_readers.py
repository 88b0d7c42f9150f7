"""What needs only the standard library, read here as in a room."""

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from service.evidence.integrity.checker.child import examine
from service.evidence.integrity.checker.sniff import judged, sniff
from service.evidence.integrity.checker.zips import FREE_UNPACKED


def seen(tmp_path: Path, name: str, data: bytes) -> tuple[str | None, bool | None, list[str], dict[str, object]]:
    path = tmp_path / "file"
    path.write_bytes(data)
    found = examine(path, name.rpartition(".")[2])
    return found["sniffed"], found["opens"], [kind for kind, _ in found["problems"]], found["facts"]


@pytest.mark.parametrize(
    ("name", "data", "opens", "problems"),
    [
        ("a.json", b'{"a": 1}', True, []),
        ("a.json", b"\xef\xbb\xbf[1]", True, []),
        ("a.json", b'{"a": [1, 2', False, ["truncated"]),
        ("a.json", b"{'a': 1}", False, ["cannot_open"]),
        ("a.json", b'{"a": NaN}', False, ["cannot_open"]),
        ("a.json", b"[" * 200_000, False, ["bomb"]),
        ("a.json", b"9" * 10_000, False, ["cannot_open"]),
        ("a.jsonl", b'{"a":1}\n\n{"a":2}\n', True, []),
        ("a.jsonl", b'{"a":1}\n{"a":', False, ["truncated"]),
        ("a.csv", b"a,b\n1,2\n", True, []),
        ("a.csv", b"a;b\r\n1;2\r\n", True, []),
        ("a.csv", b"a,b\n1,2\n3\n", True, ["malformed"]),
        ("a.csv", b"\n\n", False, ["empty"]),
        ("a.csv", b"x" * (2 << 20), False, ["cannot_open"]),
        ("a.tsv", "a\tü\n1\t2\n".encode("latin-1"), True, []),
        ("a.txt", b"a\x00b", False, ["type_mismatch"]),
        ("a.txt", "é".encode("utf-16"), True, []),
        ("a.html", b"<!doctype html><p>x", True, []),
        ("a.xml", b"<a><b/></a>", True, []),
        ("a.xml", b"<a><b></a>", False, ["cannot_open"]),
        ("a.xml", b"<a><b>", False, ["truncated"]),
        ("a.xml", b"<a>" * 501, False, ["bomb"]),
        ("a.xml", b'<!DOCTYPE a [<!ENTITY x "1"><!ENTITY y "&x;&x;">]><a>&y;</a>', False, ["bomb"]),
        ("a.xml", b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', False, ["bomb"]),
        ("a.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="20px"/>', True, []),
        ("a.svg", b"<html/>", False, ["cannot_open"]),
        ("a.ipynb", b'{"cells": [{}], "nbformat": 4}', True, []),
        ("a.ipynb", b"{}", False, ["cannot_open"]),
        ("a.py", b"x = 1\n", True, []),
        ("a.py", b"x = = 1\n", True, ["malformed"]),
        ("a.obj", b"v 0 0 0\nf 1 1 1\n", True, []),
        ("a.obj", b"nothing\n", False, ["cannot_open"]),
        ("a.stl", b"solid x\nfacet normal 0 0 1\nendfacet\nendsolid x\n", True, []),
        ("a.stl", b"solid x\nfacet normal 0 0 1\n", False, ["truncated"]),
        ("a.stl", bytes(80) + struct.pack("<I", 2) + bytes(50), False, ["truncated"]),
        ("a.gltf", b'{"asset": {"version": "2.0"}, "meshes": []}', True, []),
        ("a.glb", b"glTF" + struct.pack("<II", 2, 9999) + bytes(20), False, ["truncated"]),
        ("a.rtf", b"{\\rtf1 x}", True, []),
        ("a.rtf", b"{\\rtf1 x", False, ["truncated"]),
        ("a.parquet", b"PAR1" + bytes(20), False, ["truncated"]),
        (
            "a.ttf",
            b"\x00\x01\x00\x00\x00\x01" + bytes(6) + b"glyf" + struct.pack(">III", 0, 28, 99),
            False,
            ["truncated"],
        ),
        ("a.pdf", b"<html><body>no pdf</body></html>", False, ["type_mismatch"]),
        ("a.docx", b"%PDF-1.4", False, ["type_mismatch"]),
        ("a.xlsx", b"id,name\n1,x\n", False, ["type_mismatch"]),
        ("a.bin", bytes(range(256)), None, []),
        ("a.rar", b"Rar!\x1a\x07\x00" + bytes(20), None, []),
    ],
)
def test_each_is_said_of(tmp_path: Path, name: str, data: bytes, opens: bool | None, problems: list[str]) -> None:
    assert seen(tmp_path, name, data)[1:3] == (opens, problems)


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_a_zip_is_read_to_the_end(tmp_path: Path) -> None:
    whole = packed({"a.txt": b"hello" * 100, "b/c.txt": b""})
    assert seen(tmp_path, "a.zip", whole) == ("zip", True, [], {"entries": 2, "unpacked_bytes": 500})
    assert seen(tmp_path, "a.zip", whole[:-30])[2] == ["truncated"]
    stored = packed({"a.txt": b"hello" * 100}, zipfile.ZIP_STORED)
    assert seen(tmp_path, "a.zip", stored.replace(b"hello", b"jello", 1))[2] == ["cannot_open"]


@pytest.mark.fault(71)
def test_bombs_end_at_a_limit(tmp_path: Path) -> None:
    inner = packed({"x": bytes(FREE_UNPACKED + (1 << 20))})
    for name in ("a.zip", "a.docx"):
        assert seen(tmp_path, name, inner)[1] is False
    assert seen(tmp_path, "a.zip", inner)[2] == ["bomb"]
    for _ in range(10):
        inner = packed({"word/document.xml": inner, "[Content_Types].xml": b"<Types/>"})
    kind, opens, problems, _ = seen(tmp_path, "a.docx", inner)
    assert (kind, opens, problems) == ("docx", False, ["cannot_open"])


def test_a_locked_zip_says_so(tmp_path: Path) -> None:
    locked = bytearray(packed({"a": b"x"}, zipfile.ZIP_STORED))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    assert seen(tmp_path, "a.zip", bytes(locked))[2] == ["encrypted"]


def test_a_document_is_its_parts(tmp_path: Path) -> None:
    types, relations = b"<Types/>", b'<Relationships><Relationship Target="%s"/></Relationships>'
    parts = {"[Content_Types].xml": types, "word/document.xml": b"<w:document xmlns:w='x'><w:p/></w:document>"}
    assert seen(tmp_path, "a.docx", packed(parts)) == ("docx", True, [], {"entries": 1})
    for target, problems in ((b"styles.xml", ["malformed"]), (b"document.xml", []), (b"../x", ["malformed"])):
        linked = {**parts, "word/_rels/document.xml.rels": relations % target}
        assert seen(tmp_path, "a.docx", packed(linked))[2] == problems
    assert seen(tmp_path, "a.docx", packed({**parts, "word/document.xml": b"<w"}))[2] == ["truncated"]
    assert seen(tmp_path, "a.docx", packed({"[Content_Types].xml": types}))[2] == ["cannot_open"]
    assert seen(tmp_path, "a.xlsx", packed(parts))[2] == ["type_mismatch"]


def ole(*names: str) -> bytes:
    """A container of two sectors: the allocation table and the directory."""
    head = bytearray(512)
    head[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", head, 30, 9)
    struct.pack_into("<I", head, 48, 1)
    struct.pack_into("<109I", head, 76, 0, *[0xFFFFFFFF] * 108)
    directory = bytearray(512)
    for n, name in enumerate(names):
        text = name.encode("utf-16-le")
        directory[128 * n : 128 * n + len(text)] = text
        struct.pack_into("<H", directory, 128 * n + 64, len(text) + 2)
    return bytes(head) + struct.pack("<128I", 0xFFFFFFFD, 0xFFFFFFFE, *[0xFFFFFFFF] * 126) + bytes(directory)


def test_an_old_document_is_its_directory(tmp_path: Path) -> None:
    whole = ole("Root Entry", "WordDocument")
    assert seen(tmp_path, "a.doc", whole) == ("ole", True, [], {"entries": 2})
    assert seen(tmp_path, "a.doc", whole[:1200])[2] == ["truncated"]
    assert seen(tmp_path, "a.doc", whole[:300])[2] == ["truncated"]
    assert seen(tmp_path, "a.xls", ole("Root Entry"))[2] == ["cannot_open"]
    assert seen(tmp_path, "a.docx", ole("Root Entry", "EncryptedPackage"))[2] == ["encrypted"]
    looped = bytearray(whole)
    struct.pack_into("<I", looped, 512 + 4, 1)
    assert seen(tmp_path, "a.doc", bytes(looped))[1] is True


def test_a_font_is_its_tables(tmp_path: Path) -> None:
    whole = b"\x00\x01\x00\x00\x00\x01" + bytes(6) + b"glyf" + struct.pack(">III", 0, 28, 4) + b"data"
    assert seen(tmp_path, "a.ttf", whole) == ("ttf", True, [], {"entries": 1})
    assert seen(tmp_path, "a.ttf", whole[:-1])[2] == ["truncated"]
    woff = b"wOFF" + bytes(4) + struct.pack(">IH", 20, 3) + bytes(6)
    assert seen(tmp_path, "a.woff", woff)[1:] == (True, [], {"entries": 3})
    assert seen(tmp_path, "a.woff", woff[:-1])[2] == ["truncated"]


def test_names_and_contents_are_compared_by_family() -> None:
    assert judged("jpg", "png") == ("png", True)
    assert judged("jpg", "jpeg") == ("jpeg", False)
    assert judged("docx", "ole") == ("ole", False)
    assert judged("mp4", None) == ("mp4", False)
    assert judged("", "pdf") == ("pdf", False)
    assert judged("zip", "docx") == ("zip", False)
    assert judged("csv", "html") == ("csv", False)
    assert judged("pdf", "text") == (None, True)
    assert sniff(b"", b"") is None
    assert json.dumps(judged("xyz", None)) == "[null, false]"
