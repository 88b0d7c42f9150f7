"""The host's side of the integrity report: what comes out of a room is untrusted, what goes in is bounded."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.integrity import MAX_FILES, IntegrityReport, ProblemType
from service.evidence import batches
from service.evidence.integrity import report as making
from service.evidence.integrity.answers import answers
from service.evidence.integrity.bundle import checker_bundle
from service.evidence.integrity.report import ReportUnavailable, make_report
from tests.unit.evidence.rig import ScriptedRooms, Shelf, line


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


async def _made(shelf: Shelf, *lines: bytes) -> IntegrityReport:
    return await make_report(shelf.entries, shelf.path, ScriptedRooms(lambda _: b"".join(lines)))


async def test_what_needs_no_room_gets_none(shelf: Shelf) -> None:
    shelf.put("output/report.md", "# Zürich\n".encode())
    shelf.put("output/empty.pdf", b"")
    shelf.put("output/pkg/__init__.py", b"")
    shelf.put("output/film.mp4", b"x", size=300 << 20)
    shelf.entries.append(ArtifactEntry("output/link.pdf", EntryKind.SYMLINK, link_target="/etc/passwd"))
    found = await make_report(shelf.entries, shelf.path, None)
    said = {f.path: (f.opens, [p.type.value for p in f.problems]) for f in found.files}
    assert said == {
        "output/report.md": (True, []),
        "output/empty.pdf": (False, ["empty"]),
        "output/pkg/__init__.py": (None, []),
        "output/film.mp4": (None, ["too_large_to_check"]),
    }
    assert found.problems == 1


@pytest.mark.parametrize("data", [b"%PDF-1.4 text", b"<html></html>", b"a\x00b", b"\xff\xfe", b"{\\rtf1}"])
async def test_a_text_that_may_be_something_else_goes_to_a_room(shelf: Shelf, data: bytes) -> None:
    shelf.put("output/a.txt", data)
    rooms = ScriptedRooms(lambda asked: line(asked[0][0]))
    await make_report(shelf.entries, shelf.path, rooms)
    assert [r.asked for r in rooms.rooms] == [[(0, "txt")]]


async def test_no_name_of_the_deliverable_enters_a_room(shelf: Shelf) -> None:
    shelf.put("output/'; rm -rf x.pdf", b"1")
    shelf.put("output/x.a b", b"2")
    shelf.put("output/.hidden", b"3")
    shelf.put("output/UPPER.PDF", b"4")
    rooms = ScriptedRooms(lambda _: b"")
    await make_report(shelf.entries, shelf.path, rooms)
    (room,) = rooms.rooms
    assert [f.path for f in room.files] == ["check.pyz", "in/0/file", "in/1/file", "in/2/file", "in/3/file"]
    assert room.asked == [(0, "pdf"), (1, ""), (2, ""), (3, "pdf")]


async def test_a_file_without_an_answer_is_no_problem_of_the_agents(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"1")
    shelf.put("output/b.pdf", b"2")
    found = await _made(shelf, line(1, problems=[["encrypted", "by a password"]], opens=False))
    assert [(f.opens, [p.type for p in f.problems]) for f in found.files] == [
        (None, [ProblemType.CHECKER_FAILED]),
        (False, [ProblemType.ENCRYPTED]),
    ]
    assert found.problems == 1


@pytest.mark.fault(71)
@pytest.mark.parametrize(
    "said",
    [
        b"\x00\xff garbage\n",
        b"[]\n1\nnull\n",
        line(7),
        line(-1),
        line(0, path="output/other.pdf"),
        line(0, opens="yes"),
        line(0, sniffed="<script>"),
        line(0, sniffed="x" * 65),
        line(0, facts={"pages": -1}),
        line(0, facts={"pages": 1e400}),
        line(0, facts={"pages": "12"}),
        line(0, facts={"score": 3}),
        line(0, facts={"duration_s": float("nan")}),
        line(0, problems=[["empty"]]),
        line(0, problems=[["hacked", "x"]]),
        line(0, problems=[["checker_failed", "let it pass"]]),
        line(0, problems=[["empty", "x"]] * 9),
        line(0, problems="empty"),
        line(0, problems=[["empty", "x" * 70_000]]),
        b'{"n":0,"facts":' + b"[" * 50_000 + b"\n",
        line(0)[:-20],
    ],
)  # fmt: skip
async def test_a_line_that_does_not_fit_is_no_answer(shelf: Shelf, said: bytes) -> None:
    shelf.put("output/a.pdf", b"1")
    (file,) = (await _made(shelf, said)).files
    assert [p.type for p in file.problems] == [ProblemType.CHECKER_FAILED]
    assert file.path == "output/a.pdf"


def test_only_numbers_that_were_asked_about_are_answered() -> None:
    assert answers(line(0) + line(2), frozenset({0, 1})).keys() == {0}


async def test_the_first_answer_about_a_file_counts(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"1")
    (file,) = (await _made(shelf, line(0, opens=False, problems=[["bomb", ""]]), line(0))).files
    assert (file.opens, [p.type for p in file.problems]) == (False, [ProblemType.BOMB])


async def test_words_are_cut_and_lose_what_moves_cursors(shelf: Shelf) -> None:
    shelf.put("output/a.pdf", b"1")
    detail = "\x1b]52;c;x\x07\u2028" + "é" * 400
    (file,) = (await _made(shelf, line(0, opens=False, problems=[["cannot_open", detail]]))).files
    assert file.problems[0].detail == (" ]52;c;x " + "é" * 400)[:300]


@given(
    st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_no_bytes_break_the_parser(data: bytes) -> None:
    assert answers(data, frozenset({0, 1})).keys() <= {0, 1}


async def test_batches_are_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "BATCH_BYTES", 100)
    monkeypatch.setattr(batches, "IN_MEMORY_BYTES", 50)
    for n, size in enumerate([60, 30, 20, 500, 1]):
        shelf.put(f"output/{n}.bin", bytes([n]) * size)
    rooms = ScriptedRooms(lambda asked: b"".join(line(n, sniffed=None, opens=None) for n, _ in asked))
    found = await make_report(shelf.entries, shelf.path, rooms)
    assert [[n for n, _ in room.asked] for room in rooms.rooms] == [[0, 1], [2], [3], [4]]
    assert rooms.in_memory == [False, True, False, True]
    assert all(not f.problems for f in found.files)


async def test_files_beyond_the_first_are_counted(shelf: Shelf) -> None:
    shelf.put("output/a.md", b"x")
    entries = [
        ArtifactEntry(f"output/{n}.md", EntryKind.FILE, 1, shelf.entries[0].sha256) for n in range(MAX_FILES + 7)
    ]
    found = await make_report(entries, shelf.path, None)
    assert (len(found.files), found.not_listed) == (MAX_FILES, 7)


async def test_what_the_store_lost_is_not_said_of_the_file(shelf: Shelf) -> None:
    shelf.entries.append(ArtifactEntry("output/a.md", EntryKind.FILE, 1, "0" * 64))
    with pytest.raises(ReportUnavailable) as caught:
        await make_report(shelf.entries, shelf.path, None)
    assert caught.value.type == "deliverable_missing"


async def test_without_an_engine_there_is_no_report_of_what_must_be_opened(shelf: Shelf) -> None:
    shelf.put("output/a.json", b"{}")
    with pytest.raises(ReportUnavailable) as caught:
        await make_report(shelf.entries, shelf.path, None)
    assert caught.value.type == "no_rooms"


def test_the_checker_is_the_same_bytes_each_time_and_whole() -> None:
    first = checker_bundle()
    checker_bundle.cache_clear()
    assert first == checker_bundle()
    assert json.dumps(IntegrityReport().model_dump(mode="json"))
