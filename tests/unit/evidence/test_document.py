"""What the host makes of the room's answers: bounded, checked, and never silent about what is missing."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.domain import evidence
from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.evidence import EvidenceDocument
from service.evidence.extraction import document as making
from service.evidence.extraction.document import EvidenceUnavailable, make_document
from service.sandboxes.contract import EngineError
from tests.unit.evidence.extraction_rig import PNG, ScriptedRooms, died, line, picture, text
from tests.unit.evidence.rig import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


async def made(shelf: Shelf, rooms: Any, kept: dict[str, bytes] | None = None) -> EvidenceDocument:
    def keep(some: Mapping[str, bytes]) -> None:
        if kept is not None:
            kept.update(some)

    return await make_document(shelf.entries, shelf.path, rooms, keep)


async def test_plain_text_needs_no_room(shelf: Shelf) -> None:
    shelf.put("output/a.md", b"# Title\r\nwords \x1b[2J")
    shelf.put("output/b.py", b"print(1)\n")
    shelf.put("output/none.txt", b"")
    shelf.entries.append(ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="x"))
    found = await made(shelf, None)
    assert [(f.kind, f.state, [p.text for p in f.parts]) for f in found.files] == [
        ("text", "extracted", ["# Title\nwords \u241b[2J"]), ("code", "extracted", ["print(1)\n"]), ("binary", "listed", []),
    ]  # fmt: skip
    assert found.files[2].notes == ("the file is empty",)
    assert found.skipped == (("output/link", "skipped_symlink"),)


async def test_what_only_looks_like_text_goes_to_a_room(shelf: Shelf) -> None:
    for name, data in (("a.txt", b"%PDF-1.4 ..."), ("b.md", b"<html>"), ("c.txt", b"\xff\xfe"), ("d.txt", b"a\x00b")):
        shelf.put(f"output/{name}", data)
    rooms = ScriptedRooms(lambda asked: b"".join(line(n, text("x")) for n, _ in asked))
    await made(shelf, rooms)
    assert [n for n, _ in rooms.rooms[0].asked["files"]] == [0, 1, 2, 3]
    assert rooms.rooms[0].asked["caps"]["file_chars"] == evidence.FILE_CHARS
    assert {f.path for f in rooms.rooms[0].files} == {"extract.pyz", *(f"in/{n}/file" for n in range(4))}


@pytest.mark.parametrize(
    "said",
    [
        b"", b"[]", b"{", b'{"n": 0}', line(1, text("other")), line(0, ("secret", "", "x", "", 0)), line(0, state="fine"),
        line(0, kind="../x"), line(0, extra=1), line(0, ("text", "", "x", "", -1)), b"[" * 100_000,
        line(0, text("x"), facts={"a": [1]}), line(0, text("x"), left=[1, 2, 3]), line(0, text("x"), images=[["a"]]),
        line(0, text("x"), notes=["n"] * 51), line(0, *[text("x")] * 2001), b'{"n":0,"kind":"pdf","state":"extracted","notes":["\\ud800"]}',
        json.dumps({"n": 0, "kind": "pdf", "state": "extracted", "facts": {"a": float("nan")}}).encode(),
        line(0, text("y" * (7 << 20))),
    ],
)  # fmt: skip
async def test_an_answer_that_does_not_fit_is_none(shelf: Shelf, said: bytes) -> None:
    shelf.put("output/a.pdf", b"%PDF")
    found = await made(shelf, ScriptedRooms(lambda _: said))
    assert [(f.state, f.error, f.parts) for f in found.files] == [("failed", "extractor_failed", ())]


async def test_the_first_answer_about_a_file_counts(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"%PDF")
    found = await made(shelf, ScriptedRooms(lambda _: line(0, text("first")) + line(0, text("second"))))
    assert [p.text for p in found.files[0].parts] == ["first"]


async def test_what_is_said_can_be_stored_and_printed(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"%PDF")
    said = line(
        0, ("page", "page\n1\u2028", "nul \x00 tab\t\r\nline", "", 0), notes=["a\x1b[31m"], detail="b\nc",
        facts={"title\n": "x\ny", "ok": True, "n": 1.5}, error="cannot_open", state="failed",
    )  # fmt: skip
    (file,) = (await made(shelf, ScriptedRooms(lambda _: said))).files
    assert (file.parts[0].label, file.parts[0].text) == ("page 1 ", "nul \u2400 tab\t\nline")
    assert (file.notes, file.detail, file.error) == (("a [31m",), "b c", "cannot_open")
    assert file.facts == {"title ": "x y", "ok": True, "n": 1.5}
    EvidenceDocument.model_validate_json(EvidenceDocument(files=(file,)).model_dump_json(exclude_defaults=True))


async def test_texts_share_what_the_document_holds(shelf: Shelf) -> None:
    for n in range(100):
        shelf.put(f"output/{n}.pdf", b"%%PDF %d" % n)
    rooms = ScriptedRooms(lambda asked: b"".join(line(n, text("s" if n % 2 else "l" * 150_000)) for n, _ in asked))
    found = await made(shelf, rooms)
    assert len(rooms.rooms) == 3
    kept = [sum(len(p.text) for p in f.parts) for f in found.files]
    assert kept[1::2] == [1] * 50
    assert len({*kept[::2]}) == 1
    assert 1_450_000 < sum(kept) < evidence.TOTAL_CHARS + 50 * 60
    assert all("characters left out here" in f.parts[0].text for f in found.files[::2])
    assert found.omitted.chars == sum(f.omitted.chars for f in found.files)
    assert found.omitted.chars + sum(kept) - 50 * len("\n[… 120001 characters left out here …]\n") == pytest.approx(
        50 * 150_000 + 50, abs=200
    )


async def test_pictures_are_what_was_announced_or_left_out(shelf: Shelf) -> None:
    good, other, script = PNG + b"good", PNG + b"other", b"<svg onload='x'>"
    rows = [
        picture(good), picture(PNG + b"lost"), picture(other, sha="0" * 64), picture(script), picture(good, media="image/jpeg"),
        picture(other, size=len(other) - 1),
    ]  # fmt: skip
    store = {row[-1]: data for row, data in zip(rows, (good, None, other, script, good, other), strict=True) if data}
    shelf.put("output/a.pdf", b"%PDF")
    kept: dict[str, bytes] = {}
    (file,) = (await made(shelf, ScriptedRooms(lambda _: line(0, images=rows), store), kept)).files
    assert [i.sha256 for i in file.images] == [rows[0][-1]]
    assert kept == {rows[0][-1]: good}
    assert file.omitted.images == 5


async def test_pictures_share_what_the_document_holds(shelf: Shelf) -> None:
    data = [PNG + bytes([n]) for n in range(32)]
    store = {picture(d)[-1]: d for d in data}
    for n in range(20):
        shelf.put(f"output/{n}.pdf", b"%%PDF %d" % n)
    rooms = ScriptedRooms(lambda asked: b"".join(line(n, images=[picture(d) for d in data]) for n, _ in asked), store)
    found = await made(shelf, rooms)
    assert {len(f.images) for f in found.files} == {10}
    assert found.omitted.images == 20 * 22


async def test_a_room_that_dies_costs_the_file_that_ended_it(shelf: Shelf) -> None:
    for n in range(9):
        shelf.put(f"output/{n}.pdf", b"%%PDF %d" % n)

    def answer(asked: list[tuple[int, str]]) -> bytes:
        return died(asked) if any(n == 4 for n, _ in asked) else b"".join(line(n, text("x")) for n, _ in asked)

    rooms = ScriptedRooms(answer)
    found = await made(shelf, rooms)
    assert [f.error for f in found.files] == [None, None, None, None, "extractor_failed", None, None, None, None]
    assert sum(r.asked["files"] == [[4, "pdf"]] for r in rooms.rooms) == 2


async def test_an_engine_that_ends_a_room_costs_nothing(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"%PDF")
    tries: list[int] = []

    def answer(asked: list[tuple[int, str]]) -> bytes:
        tries.append(1)
        return died(asked) if len(tries) == 1 else line(0, text("x"))

    found = await made(shelf, ScriptedRooms(answer))
    assert [f.state for f in found.files] == ["extracted"]


async def test_a_program_that_ends_early_costs_nothing_that_can_be_read_again(shelf: Shelf) -> None:
    for n in range(5):
        shelf.put(f"output/{n}.pdf", b"%%PDF %d" % n)
    rooms = ScriptedRooms(lambda asked: line(asked[0][0], text("x")))
    found = await made(shelf, rooms)
    assert [f.state for f in found.files] == ["extracted"] * 5


async def test_no_room_is_no_document(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"%PDF")
    with pytest.raises(EvidenceUnavailable) as none:
        await made(shelf, None)

    def away(_: object) -> bytes:
        raise EngineError("engine_away", "no answer")

    with pytest.raises(EvidenceUnavailable) as failed:
        await made(shelf, ScriptedRooms(away))
    shelf.path(shelf.entries[0].sha256 or "").unlink()
    with pytest.raises(EvidenceUnavailable) as lost:
        await made(shelf, None)
    assert [e.value.type for e in (none, failed, lost)] == ["no_rooms", "room_failed", "deliverable_missing"]


async def test_time_is_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "MOST_S", 0.0)
    shelf.put("output/a.pdf", b"%PDF")
    found = await asyncio.wait_for(made(shelf, ScriptedRooms(died)), 5)
    assert [f.error for f in found.files] == ["timeout"]


async def test_files_beyond_the_caps_are_counted(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "MAX_FILES", 2)
    for n in range(5):
        shelf.put(f"output/{n}.txt", b"%d" % n)
    shelf.put("output/huge.pdf", b"%PDF", size=1 << 40)
    shelf.entries.insert(0, shelf.entries.pop())
    found = await made(shelf, None)
    assert (len(found.files), found.not_listed) == (2, 4)
    assert (found.files[0].state, found.files[0].error) == ("failed", "too_large")
