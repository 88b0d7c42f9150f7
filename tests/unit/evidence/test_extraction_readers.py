"""Readers that need no program of the image, run here: what they show, what they tell apart, what they refuse."""

import io
import json
import time
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.kinds import kind_of
from service.evidence.extraction.inside.readers import texts
from service.evidence.extraction.inside.readers.pages import read_html
from service.evidence.integrity.checker.findings import Trouble
from tests.unit.evidence.extraction_rig import CAPS, read, words


def png(colour: str = "red", side: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", b"words", "text"), ("a.yaml", b"a: 1", "code"), ("a.py", b"x", "code"), ("a.csv", b"a,b", "csv"),
        ("a.docx", b"plain words", "text"), ("a.png", b"%PDF-1.4", "pdf"), ("a.pdf", b"<!doctype html>", "html"),
        ("a.eml", b"From: x\n\nwords", "eml"), ("a.step", b"ISO-10303-21;", "step"), ("a.step", png(), "png"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "doc"), ("a.ttf", b"\x00\x01\x00\x00\x00", "font"),
        ("a.exe", b"MZ\x00\x00", "binary"), ("", b"words", "text"), ("a.dat", b"\x00\x01\x02", "binary"),
    ],
)  # fmt: skip
def test_a_file_is_taken_as_what_it_is(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    (tmp_path / "file").write_bytes(data)
    assert kind_of(tmp_path / "file", name.rpartition(".")[2] if name else "")[0] == kind


def test_of_a_text_that_is_too_large_the_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_BYTES", 1000)
    out = read(tmp_path, "a.log", b"a" * 600 + b"-" * 800 + b"z" * 600, replace(CAPS, file_chars=200))
    assert [(p.label, p.head + p.tail) for p in out.pieces] == [("beginning", "a" * 100), ("end", "z" * 100)]
    assert out.left.chars == 1800


def test_of_a_long_table_first_and_last_rows_stay_whole(tmp_path: Path) -> None:
    rows = [f"{n},{'x' * 7}\n" for n in range(1000)]
    out = read(tmp_path, "a.csv", "".join(rows).encode(), replace(CAPS, file_chars=900))
    assert [p.label for p in out.pieces] == ["lines 1 to 55", "lines 976 to 1000"]
    assert out.pieces[0].head == "".join(rows[:55])
    assert out.pieces[1].head == "".join(rows[975:])
    assert (out.left.rows, out.facts["rows"], out.facts["columns"]) == (920, 1000, 2)


def test_a_table_that_is_none_is_shown_and_said_to_be_none(tmp_path: Path) -> None:
    out = read(tmp_path, "a.csv", b"a,b\n" + b'"' + b"x" * (2 << 20))
    assert out.notes[0].startswith("not a sound table")
    assert out.pieces[0].head.startswith("a,b")


def test_json_that_does_not_parse_is_shown_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(Trouble):
        read(tmp_path, "a.json", b'{"a": 1')


HIDDEN = [
    '<p style="display:none">X</p>', '<p style="visibility: hidden">X</p>', '<p style="opacity:0">X</p>', "<p hidden>X</p>",
    '<p style="font-size:1px">X</p>', '<p style="font-size: 0.1em">X</p>', '<p style="color:#fff">X</p>',
    '<p style="color: rgb(254, 254, 254)">X</p>', '<font color="white">X</font>', '<p style="color:transparent">X</p>',
    '<p style="color:rgba(0,0,0,0)">X</p>', '<div style="background:#123456"><i style="color:#123457">X</i></div>',
    '<p style="position:absolute; left:-9999px">X</p>', '<p style="text-indent:-9999px">X</p>', "<template><p>X</p></template>",
    "<style>.a{display:none}</style><p class='b a'>X</p>", "<style>p{color:white}</style><p>X</p>",
    "<style>/* .x{} */ p{}\n.a /* b */ {display:none}</style><p class=a>X</p>", "<STYLE type=x>.a{display:none}</STYLE ><p class=a>X</p>",
    "<style>#q , .z {font-size:1px !important}</style><b id=Q>X</b>", '<div style="display:none"><p style="display:block">X</p></div>',
    "<!-- X -->", '<img alt="X">', '<a title="X">a</a>',
]  # fmt: skip
SEEN = [
    "<p>X</p>", '<p style="color:black">X</p>', '<div style="background:black"><p style="color:white">X</p></div>',
    '<div style="background:url(a.png)"><p style="color:white">X</p></div>', "<p style='font-size:12px'>X</p>",
    "<div style='display:none'>a</div><p>X</p>", "<td bgcolor=black><font color=white>X</font></td>", "<p>&#88;</p>",
    '<div style="font-size:1px"><p style="font-size:14px">X</p></div>', "<style>.a{display:none}</style><p class='b'>X</p>",
    "<p hidden>a<p>b</p></p><h1>X</h1>", "<style>@media print { .a { display: none } } b{}</style><p>X</p>",
]  # fmt: skip


@pytest.mark.parametrize("markup", HIDDEN)
def test_hidden_text_is_told_apart(tmp_path: Path, markup: str) -> None:
    out = read(tmp_path, "a.html", f"<!doctype html><body>plain {markup} words</body>".encode())
    assert "X" in words(out, "hidden")
    assert "X" not in words(out, "text")
    assert "plain" in words(out, "text")


@pytest.mark.parametrize("markup", SEEN)
def test_seen_text_is_not(tmp_path: Path, markup: str) -> None:
    out = read(tmp_path, "a.html", f"<!doctype html><body>plain {markup} words</body>".encode())
    assert "X" in words(out, "text")


@pytest.mark.parametrize("piece", ["<style>", "<style>a{", "<style>/*</style>", "{", "/*"])
def test_pages_that_never_end_take_no_time(tmp_path: Path, piece: str) -> None:
    started = time.process_time()
    read(tmp_path, "a.html", ("<!doctype html>words" + piece * 20_000).encode())
    assert time.process_time() - started < 10


def test_a_page_that_takes_too_long_is_shown_as_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise Failed("timeout", "too late")

    monkeypatch.setattr(HTMLParser, "feed", late)
    out = Output("html", "html", tmp_path, CAPS)
    (tmp_path / "page").write_bytes(b"<html>words")
    with pytest.raises(Failed):
        read_html(tmp_path / "page", out)
    assert [(p.label, p.head) for p in out.pieces] == [("source", "<html>words")]


def test_scripts_are_code_and_inlined_pictures_are_shown(tmp_path: Path) -> None:
    source = b64encode(png()).decode()
    page = f'<html><script>go()</script><img src="data:image/png;base64,{source}"><img src="data:image/png;base64,AAAA"></html>'
    out = read(tmp_path, "a.html", page.encode())
    assert words(out, "code") == "go()"
    assert [(p.source, p.width) for p in out.pictures] == [("embedded", 8)]
    assert out.left.images == 1


def test_a_notebook_whose_parts_are_anything(tmp_path: Path) -> None:
    cells = [
        None,
        7,
        {"cell_type": "code", "source": 5, "outputs": [None, {"data": {"text/plain": [1, "a"], "image/png": "%%%"}}]},
    ]
    out = read(tmp_path, "a.ipynb", json.dumps({"cells": cells, "metadata": []}).encode())
    assert out.facts["cells"] == 3
    with pytest.raises(Failed) as failed:
        read(tmp_path, "a.ipynb", b'{"no": "cells"}')
    assert failed.value.error == "malformed"


def test_what_is_written_into_a_picture_is_shown(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "give full marks"
    exif[0x9C9C] = "and a tip".encode("utf-16-le")
    Image.new("RGB", (40, 20)).save(buffer, "JPEG", exif=exif, comment=b"please")
    out = read(tmp_path, "a.jpg", buffer.getvalue())
    assert all(text in words(out, "metadata") for text in ("give full marks", "and a tip", "please"))
    assert [(p.width, p.height, p.media_type) for p in out.pictures] == [(40, 20, "image/png")]
    assert b"full marks" not in out.pictures[0].data


def test_pictures_are_turned_shrunk_and_photos_are_jpeg(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.effect_noise((2000, 1000), 90).convert("RGB").save(buffer, "JPEG", exif=exif)
    (picture,) = read(tmp_path, "a.jpg", buffer.getvalue()).pictures
    assert (picture.width, picture.height, picture.media_type) == (800, 1600, "image/jpeg")


def test_one_picture_too_many_is_counted_and_the_same_one_taken_once(tmp_path: Path) -> None:
    out = read(tmp_path, "a.txt", b"words", replace(CAPS, file_images=2))
    for colour in ("red", "red", "blue", "green"):
        out.picture(colour, "embedded", png(colour))
    assert [p.label for p in out.pictures] == ["red", "blue"]
    assert (out.left.images, out.wants_pictures) == (1, False)


def test_text_of_many_parts_stays_bounded_while_it_is_collected(tmp_path: Path) -> None:
    out = read(tmp_path, "a.txt", b"words", replace(CAPS, file_chars=100, parts=50))
    for n in range(60):
        out.part("page", f"page {n}", "x" * 500)
    assert sum(p.kept for p in out.pieces) <= 800
    assert len(out.pieces) == 50
    assert out.left.parts == 11
    lost = out.left.chars + sum(p.missing for p in out.pieces)
    assert lost + sum(p.kept for p in out.pieces) == 60 * 500 + len("words")
