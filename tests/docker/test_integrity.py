"""Integrity reports in real rooms: each format as real libraries write it, whole and broken, and the hostile ones."""

import asyncio
import json
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.integrity import FileReport, IntegrityReport, ProblemType
from service.domain.limits import Limits
from service.evidence.integrity.bundle import checker_bundle
from service.evidence.integrity.report import IMAGE, make_report
from service.sandboxes.contract import FileSource
from service.sandboxes.docker.rooms import EngineRooms
from tests.docker import sample_files as made

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]
FFMPEG = ("/opt/media/bin/ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=10", "-f", "lavfi", "-i",
          "sine", "-t", "3", "-pix_fmt", "yuv420p")  # fmt: skip


async def report(rooms: EngineRooms, folder: Path, files: Mapping[str, bytes]) -> IntegrityReport:
    entries: list[ArtifactEntry] = []
    for name, data in files.items():
        digest = sha256(data).hexdigest()
        (folder / digest).write_bytes(data)
        entries.append(ArtifactEntry(f"output/{name}", EntryKind.FILE, len(data), digest))
    return await make_report(entries, lambda digest: folder / digest, rooms)


async def checked(rooms: EngineRooms, folder: Path, files: Mapping[str, bytes]) -> dict[str, FileReport]:
    found = await report(rooms, folder, files)
    return {f.path.removeprefix("output/"): f for f in found.files}


def said(file: FileReport) -> tuple[bool | None, list[str]]:
    return file.opens, [p.type.value for p in file.problems]


async def _films(rooms: EngineRooms) -> dict[str, bytes]:
    """Films that ffmpeg makes in the room, since nothing else here can."""
    async with rooms.open(IMAGE, Limits(disk_bytes=128 << 20), in_memory=True) as room:
        for name, more in (
            ("a.mp4", []),
            ("fast.mp4", ["-movflags", "+faststart"]),
            ("b.mp3", ["-vn"]),
            ("c.webm", ["-c:v", "vp8"]),
        ):
            done = await room.exec([*FFMPEG, *more, name], env={"LD_LIBRARY_PATH": "/opt/media/lib"})
            assert done.code == 0, done.stderr
        return {name: await room.read_file(name) for name in ("a.mp4", "fast.mp4", "b.mp3", "c.webm")}


async def test_7z(rooms: EngineRooms, tmp_path: Path) -> None:
    async with rooms.open(IMAGE, Limits(disk_bytes=128 << 20), in_memory=True) as room:
        await room.write_files(
            [FileSource("x", data=bytes(range(256)) * 99), FileSource("zeros", data=bytes(90 << 20))]
        )
        for name, more in (("a.7z", ["x"]), ("locked.7z", ["-psecret", "-mhe", "x"]), ("bomb.7z", ["zeros"])):
            done = await room.exec(["7zz", "a", "-bd", name, *more])
            assert done.code == 0, done.stdout
        files = {name: await room.read_file(name) for name in ("a.7z", "locked.7z", "bomb.7z")}
    found = await checked(rooms, tmp_path, {**files, "half.7z": files["a.7z"][: len(files["a.7z"]) // 2]})
    assert {name: said(f) for name, f in found.items()} == {
        "a.7z": (True, []), "locked.7z": (False, ["encrypted"]), "bomb.7z": (False, ["bomb"]), "half.7z": (False, ["truncated"]),
    }  # fmt: skip


async def test_whole_files_open(rooms: EngineRooms, tmp_path: Path) -> None:
    films = await _films(rooms)
    files = {
        "a.pdf": made.pdf(), "a.docx": made.letter(), "a.xlsx": made.book(), "a.pptx": made.slides(), "a.ods": made.open_document(),
        **{f"a.{ext}": made.picture(ext) for ext in ("png", "jpeg", "webp", "bmp", "tiff")}, "a.gif": made.animation(),
        "a.wav": made.sound(), "a.zip": made.packed({"x": b"1"}), "a.tar": made.archive("w"), "a.tgz": made.archive("w:gz"),
        "a.tar.xz": made.archive("w:xz"), "a.sqlite": made.database(tmp_path), "a.json": b'{"x": [1]}', "a.csv": b"a,b\n1,2\n",
        **films,
    }  # fmt: skip
    found = await checked(rooms, tmp_path, files)
    assert {name: said(f) for name, f in found.items()} == {name: (True, []) for name in files}
    facts = {name: f.facts.model_dump(exclude_none=True) for name, f in found.items()}
    assert facts["a.pdf"] == {"pages": 3}
    assert facts["a.xlsx"] == {"sheets": 2, "rows": 3}
    assert facts["a.pptx"] == {"slides": 2}
    assert facts["a.ods"] == {"sheets": 1}
    assert facts["a.png"] == {"width": 120, "height": 80, "frames": 1}
    assert facts["a.gif"]["frames"] == 5
    assert facts["a.wav"] == {"duration_s": 2.0, "audio_codec": "pcm_s16le"}
    assert {"width": 320, "height": 240, "video_codec": "h264", "audio_codec": "aac"}.items() <= facts["a.mp4"].items()
    assert facts["a.tgz"]["entries"] == 3
    assert facts["a.sqlite"] == {"entries": 1}


async def test_broken_files_say_how(rooms: EngineRooms, tmp_path: Path) -> None:
    films = await _films(rooms)
    half = {
        "a.pdf": made.pdf(), "a.docx": made.letter(), "a.xlsx": made.book(), "a.wav": made.sound(), "a.sqlite": made.database(tmp_path),
        "a.zip": made.packed({"x": bytes(range(256)) * 99}), "a.tar": made.archive("w"), "a.tgz": made.archive("w:gz"),
        "a.json": json.dumps(list(range(99))).encode(), **{f"a.{ext}": made.picture(ext) for ext in ("png", "jpeg", "bmp", "tiff")},
        "a.gif": made.animation(), "a.mp4": films["a.mp4"], "fast.mp4": films["fast.mp4"],
    }  # fmt: skip
    found = await checked(rooms, tmp_path, {name: data[: len(data) // 2] for name, data in half.items()})
    assert {name: [p.type.value for p in f.problems] for name, f in found.items()} == {
        name: ["truncated"] for name in half
    }
    wrong = await checked(
        rooms, tmp_path,
        {
            "page.pdf": b"<html><body>Report</body></html>", "text.docx": b"Dear client", "table.xlsx": b"a,b\n1,2\n",
            "photo.jpg": made.picture("png"), "locked.pdf": made.pdf(password="secret"), "noise.mp4": bytes(range(256)) * 50,
            "noise.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "old.doc": made.letter(), "empty.pptx": b"",
            "sum.zip": made.packed({"x": b"hello" * 9}, 0).replace(b"hello", b"jello", 1),
        },
    )  # fmt: skip
    assert {name: said(f) for name, f in wrong.items()} == {
        "page.pdf": (False, ["type_mismatch"]),
        "text.docx": (False, ["type_mismatch"]),
        "table.xlsx": (False, ["type_mismatch"]),
        "photo.jpg": (True, ["type_mismatch"]),
        "locked.pdf": (False, ["encrypted"]),
        "noise.mp4": (False, ["cannot_open"]),
        "noise.png": (False, ["cannot_open"]),
        "old.doc": (False, ["type_mismatch"]),
        "empty.pptx": (False, ["empty"]),
        "sum.zip": (False, ["cannot_open"]),
    }


@pytest.mark.fault(71)
async def test_bombs_fail_cleanly_beside_a_sound_file(rooms: EngineRooms, tmp_path: Path) -> None:
    files = {
        "flood.png": made.pixel_flood(), "deep.docx": made.zip_bomb(), "flat.zip": made.packed({"x": bytes(100 << 20)}),
        "bomb.gz": made.gzip_bomb(), "laughs.xml": made.laughs(), "laughs.svg": made.laughs().replace(b"<x>", b"<svg>").replace(b"</x>", b"</svg>"),
        "deep.json": b"[" * 1_000_000, "sound.pdf": made.pdf(),
    }  # fmt: skip
    started = time.monotonic()
    found = await checked(rooms, tmp_path, files)
    assert time.monotonic() - started < 60
    assert said(found.pop("sound.pdf")) == (True, [])
    assert found.pop("deep.docx").opens is False
    assert {name: said(f) for name, f in found.items()} == {name: (False, ["bomb"]) for name in found}


FORGER = """
import os, sys
from service.evidence.integrity.checker import program, texts

def read(path, kind):
    for fd in range(256):
        try:
            open(f"/proc/{os.getppid()}/fd/{fd}", "wb", buffering=0).write(b'{"n": 1, "opens": true}' + bytes([10]))
        except OSError:
            pass
    os._exit(0)

texts.read_text = read
sys.exit(program.main("in"))
"""


async def test_a_reader_that_a_file_has_taken_over_cannot_speak_for_others(rooms: EngineRooms) -> None:
    files = [FileSource("check.pyz", data=checker_bundle()), FileSource("in/0/file", data=b"text")]
    async with rooms.open(IMAGE, Limits(disk_bytes=128 << 20), in_memory=True) as room:
        await room.write_files(files)
        done = await room.exec(["python3", "-c", FORGER], env={"PYTHONPATH": "check.pyz"}, stdin=b'[[0, "txt"]]')
    assert (done.code, done.stdout.count(b"\n"), b'"n": 0' in done.stdout) == (0, 1, True), done.stdout


async def test_a_room_that_dies_costs_answers_and_nothing_else(rooms: EngineRooms, tmp_path: Path) -> None:
    files = {"a.json": b"{}", "b.json": b"{}"}

    async def kill_rooms() -> None:
        while True:
            for sandbox_id in await rooms.backend.list_ids():
                await (await rooms.backend.attach(sandbox_id)).kill()
                return
            await asyncio.sleep(0.01)

    killing = asyncio.create_task(kill_rooms())
    try:
        found = await checked(rooms, tmp_path, files)
        kinds = {p.type for f in found.values() for p in f.problems}
        assert kinds <= {ProblemType.CHECKER_FAILED}
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)


@pytest.mark.load
async def test_twenty_office_files_take_less_than_five_seconds(rooms: EngineRooms, tmp_path: Path) -> None:
    files = {f"{n}.xlsx": made.book(200 + n) for n in range(5)}
    files |= {f"{n}.docx": made.letter() for n in range(5)} | {f"{n}.pdf": made.pdf(5 + n) for n in range(5)}
    files |= {f"{n}.png": made.picture("png", (800, 600)) for n in range(5)}
    await checked(rooms, tmp_path, {"a.csv": b"a,b\n1,2\n"})
    started = time.monotonic()
    found = await checked(rooms, tmp_path, files)
    took = time.monotonic() - started
    assert {name: said(f) for name, f in found.items()} == {name: (True, []) for name in files}
    assert took < 5, f"{took:.2f} s"
