"""Evidence of office documents and media in a real room: recalculated, drawn, converted; hostile ones beside sound ones."""

import base64
import io
import json
import sqlite3
import struct
from pathlib import Path

import pytest
from PIL import Image

from service.domain.limits import GIB, MIB, Limits
from service.sandboxes.contract import FileSource, Sandbox
from service.sandboxes.docker.rooms import EngineRooms
from tests.docker import sample_files as made
from tests.docker.extracting import extracted
from tests.fixtures import office_files as office

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]
_LIMITS = Limits(memory_bytes=2 * GIB, cpus=2, pids=256, disk_bytes=256 * MIB, inodes=4096)
_MAIL = b"""From: ann@x.test
Subject: =?utf-8?q?Offer_caf=C3=A9?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html

<p>mail body</p><p hidden>mail secret</p>
--b
Content-Type: image/png
Content-Disposition: attachment; filename="photo.png"
Content-Transfer-Encoding: base64

%s
--b
Content-Type: application/x-thing
Content-Disposition: attachment; filename="thing.bin"

abc
--b--
"""
_TRIANGLE = b"v 0 0 0\nv 2 0 0\nv 0 3 1\nusemtl red\nf 1 2 3\n"
_DRAWING = b"0\nSECTION\n2\nHEADER\n9\n$INSUNITS\n70\n4\n0\nENDSEC\n0\nSECTION\n2\nENTITIES\n0\nTEXT\n8\nwalls\n1\nKitchen\n0\nENDSEC\n0\nEOF\n"


async def test_documents_are_recalculated_drawn_and_what_is_hostile_costs_itself(
    rooms: EngineRooms, tmp_path: Path
) -> None:
    files = {
        "golden.xlsx": office.golden(), "letter.docx": office.letter(), "slides.pptx": office.slides(),
        "open.odt": office.open_text("open words"), "rich.rtf": rb"{\rtf1 rich {\b words}\par}",
        "cut.docx": office.letter()[:9000], "bomb.docx": office.inflating(), "laughs.docx": made.packed({"word/document.xml": made.laughs()}),
        "locked.xlsx": office.container("Root Entry", "EncryptionInfo", "EncryptedPackage"), "torn.odt": made.packed({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": b"<a>"}, 0),
        "noise.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000),
    }  # fmt: skip
    found = await extracted(rooms, tmp_path, files)
    states = {name: (found[name].state, found[name].error) for name in files}
    assert states == {
        **dict.fromkeys(("golden.xlsx", "letter.docx", "slides.pptx", "open.odt", "rich.rtf"), ("extracted", None)),
        "cut.docx": ("failed", "cannot_open"), "bomb.docx": ("failed", "bomb"), "laughs.docx": ("failed", "bomb"),
        "locked.xlsx": ("failed", "encrypted"), "torn.odt": ("failed", "cannot_open"), "noise.doc": ("failed", "cannot_open"),
    }  # fmt: skip

    differing = found.text("golden.xlsx", "differences")
    assert [
        row
        for row in (
            "A3\t=SUM(A1:A2)\t31\t30",
            "B3\t=A1/0\t5\t#DIV/0!",
            'D3\t="x"&"y"\txz\txy',
            "A1\t=Sums!A3*2\t62\t60",
        )
        if row not in differing
    ] == []
    assert [cell for cell in ("C3", "E3", "F3") if cell in differing] == []
    assert found["golden.xlsx"].facts["differences"] == 4
    assert "F3\t=A2-A1\t(none)\t10" in found.text("golden.xlsx", "formulas")
    for name in ("golden.xlsx", "letter.docx", "slides.pptx", "open.odt", "rich.rtf"):
        assert "page 1" in [i.label for i in found[name].images if i.source == "page"], (name, found[name].notes)
    assert "open words" in found.text("open.odt", "text")
    assert "rich words" in found.text("rich.rtf", "text")
    assert "read as docx, into which LibreOffice converted it" in found["rich.rtf"].notes
    drawn = next(i for i in found["letter.docx"].images if i.source == "page")
    with Image.open(io.BytesIO(found.pictures[drawn.sha256])) as page:
        assert min(page.convert("L").tobytes()) < 100, "there is something on the page"


@pytest.mark.slow
async def test_old_formats_are_read_as_their_successors(rooms: EngineRooms, tmp_path: Path) -> None:
    wanted = {
        "golden.xls": "golden.xlsx",
        "golden.ods": "golden.xlsx",
        "letter.doc": "letter.docx",
        "slides.ppt": "slides.pptx",
        "slides.odp": "slides.pptx",
    }
    new = {"golden.xlsx": office.golden(), "letter.docx": office.letter(), "slides.pptx": office.slides()}
    async with rooms.open("documents", _LIMITS, in_memory=True) as room:
        await room.write_files([FileSource(name, data=data) for name, data in new.items()])
        old = {name: await _converted(room, source, name.rpartition(".")[2]) for name, source in wanted.items()}
    found = await extracted(rooms, tmp_path, old)
    for name in old:
        assert (found[name].state, found[name].error, found[name].kind) == ("extracted", None, name.rpartition(".")[2])
        assert any("LibreOffice converted it" in note for note in found[name].notes)
    for name in ("golden.xls", "golden.ods"):
        assert "Net total" in found.text(name, "sheet")
        assert "secret sheet" in found.text(name, "hidden")
        assert "=SUM(A1:A2)\t" in found.text(name, "formulas")
    assert "Findings" in found.text("letter.doc", "text")
    assert "vanished words" in found.text("letter.doc", "hidden")
    for name in ("slides.ppt", "slides.odp"):
        assert "Shown title" in found.text(name, "slide")
        assert "spoken words" in found.text(name, "notes")


async def test_databases_mails_media_and_models_say_what_they_are(rooms: EngineRooms, tmp_path: Path) -> None:
    async with rooms.open("documents", _LIMITS, in_memory=True) as room:
        film = await _film(room)
    scene = {"asset": {"version": "2.0"}, "materials": [{"name": "steel"}], "accessors": [{"count": 9, "min": [0, 0, 0], "max": [1, 2, 3]}],
             "meshes": [{"name": "beam", "primitives": [{"attributes": {"POSITION": 0}}]}]}  # fmt: skip
    files = {
        "base.sqlite": made.database(tmp_path), "evil.sqlite": _evil(tmp_path), "mail.eml": _MAIL % _png64(),
        "film.mp4": film, "sound.wav": made.sound(), "model.obj": _TRIANGLE, "model.gltf": json.dumps(scene).encode(),
        "model.stl": bytes(80) + struct.pack("<I", 1) + struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0),
        "plan.dxf": _DRAWING, "lie.glb": b"glTF" + b"\xff" * 40,
    }  # fmt: skip
    found = await extracted(rooms, tmp_path, files)
    errors = {name: found[name].error for name in files if found[name].error}
    assert errors == {"lie.glb": "cannot_open"}
    assert "CREATE TABLE" in found.text("base.sqlite", "schema").upper()
    assert found.text("base.sqlite", "table").count("\n") == 500
    assert found["base.sqlite"].omitted.rows == 4500
    assert any("could not be read" in note for note in found["evil.sqlite"].notes)
    assert "good row" in found.text("evil.sqlite", "table")
    assert "Offer café" in found.text("mail.eml", "metadata")
    assert "mail body" in found.text("mail.eml", "text")
    assert "mail secret" in found.text("mail.eml", "hidden")
    assert "thing.bin" in found.text("mail.eml", "listing")
    assert [i.label for i in found["mail.eml"].images] == ["photo.png"]
    assert found["film.mp4"].facts["duration_s"] == 6.0
    assert len([i for i in found["film.mp4"].images if i.source == "frame"]) == 6
    assert found["sound.wav"].facts["audio0_sample_rate"] == "8000"
    assert {n: found["model.obj"].facts[n] for n in ("vertices", "faces", "materials", "bounding_box")} == {
        "vertices": 3, "faces": 1, "materials": 1, "bounding_box": "2 x 3 x 1",
    }  # fmt: skip
    assert (found["model.gltf"].facts["faces"], found["model.gltf"].facts["bounding_box"]) == (3, "1 x 2 x 3")
    assert found["model.stl"].facts["bounding_box"] == "5 x 4 x 0"
    assert (found["plan.dxf"].facts["units"], "Kitchen" in found.text("plan.dxf", "text")) == ("millimetres", True)


async def _converted(room: Sandbox, name: str, to: str) -> bytes:
    argv = ("/usr/bin/soffice", "-env:UserInstallation=file:///tmp/profile", "--headless", "--convert-to", to, name)
    done = await room.exec(argv, timeout_s=90, limit_bytes=MIB)
    assert done.code == 0, done.stderr
    return await room.read_file(f"{name.rpartition('.')[0]}.{to}", limit_bytes=16 * MIB)


async def _film(room: Sandbox) -> bytes:
    argv = ("/usr/bin/env", "LD_LIBRARY_PATH=/opt/media/lib", "/opt/media/bin/ffmpeg", "-v", "error", "-f", "lavfi", "-i",
            "testsrc=size=160x120:rate=5", "-t", "6", "-pix_fmt", "yuv420p", "film.mp4")  # fmt: skip
    done = await room.exec(argv, timeout_s=90, limit_bytes=MIB)
    assert done.code == 0, done.stderr
    return await room.read_file("film.mp4", limit_bytes=16 * MIB)


def _png64() -> bytes:
    return base64.encodebytes(made.picture("png"))


def _evil(folder: Path) -> bytes:
    """A name that breaks quoting, a view that never ends, a table of a module that nobody has."""
    path = folder / "evil.sqlite"
    base = sqlite3.connect(path)
    base.executescript(
        'create table "a""; drop" (x); insert into "a""; drop" values (\'good row\');'
        "pragma writable_schema = 1; insert into sqlite_master values ('table', 'z', 'z', 0, 'CREATE VIRTUAL TABLE z USING nosuch(x)');"
        "create view v as with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c;"
    )
    base.commit()
    base.close()
    return path.read_bytes()
