"""Office documents read by ours, without the office program: what is shown, what is hidden, what is refused."""

import time
from pathlib import Path

import pytest

from service.evidence.extraction.inside import packages
from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.readers import recalculation, sheets, workbooks
from service.evidence.extraction.inside.readers.book import volatile
from service.evidence.extraction.inside.readers.cells import (
    Failure,
    Value,
    column,
    is_date_format,
    letters,
    moment,
    same,
)
from service.evidence.extraction.inside.readers.formulas import moved
from service.evidence.extraction.inside.readers.rows import Rows
from service.evidence.integrity.checker.findings import Trouble
from tests.docker.sample_files import laughs, packed
from tests.fixtures import office_files as office
from tests.unit.evidence.extraction_rig import CAPS, read, words


class Calculator:
    """An office program that calculates what it is told to, and prints nothing."""

    def __init__(self, anew: Path) -> None:
        self._anew = anew
        self.asked: list[str] = []

    def convert(self, path: Path, to: str, out: Output) -> Path:
        self.asked.append(to)
        if to == "recalculated" and self._anew.exists():
            return self._anew
        raise Failed("timeout", "no printing here")


def calculated(folder: Path, data: bytes, anew: bytes) -> tuple[Output, Calculator]:
    (folder / "file").write_bytes(data)
    (folder / "anew.xlsx").write_bytes(anew)
    program = Calculator(folder / "anew.xlsx")
    out = Output("xlsx", "xlsx", folder, CAPS, program, time.monotonic() + 60)
    workbooks.read_xlsx(folder / "file", out)
    return out, program


def one(cells: str, extra: dict[str, bytes] | None = None) -> bytes:
    return office.workbook({"S": f'<sheetData><row r="1">{cells}</row></sheetData>'}, extra=extra)


def test_a_workbook_is_tables_and_what_is_hidden_stands_apart(tmp_path: Path) -> None:
    out = read(tmp_path, "a.xlsx", office.golden())
    tables, hidden = words(out, "sheet"), words(out, "hidden")
    assert "1\t10\tNet total\t\t\t\t\t2024-01-01" in tables
    assert "1\t62\t[AZ] 52" in tables
    assert [w for w in ("777", "hidden row", "white cell", "secret sheet", "reading") if w in tables] == []
    assert [w for w in ("H1: 777", "A4: hidden row", "B2: white cell", "secret sheet") if w not in hidden] == []
    assert "B3\t=A1/0\t5" in words(out, "formulas")
    assert "Total = Sums!$A$3" in words(out, "metadata")
    assert (out.facts["sheets"], out.facts["formulas"]) == (3, 7)
    assert "not recalculated: no office program here" in out.notes
    assert words(out, "differences") == ""


def test_a_value_that_its_formula_does_not_give_is_marked(tmp_path: Path) -> None:
    told = one(
        '<c r="A1"><f>1+1</f><v>3</v></c><c r="B1"><f>1/3</f><v>0.33333333333</v></c><c r="C1"><f>X()</f><v>1</v></c><c r="D1"><f>9</f></c>'
    )
    found = one(
        '<c r="A1"><f>1+1</f><v>2</v></c><c r="B1"><f>1/3</f><v>0.333333333333333</v></c><c r="C1" t="e"><f>X()</f><v>#NAME?</v></c><c r="D1"><f>9</f><v>9</v></c>'
    )
    out, program = calculated(tmp_path, told, found)
    assert words(out, "differences").splitlines()[1:] == ["A1\t=1+1\t3\t2"]
    assert out.facts["differences"] == 1
    assert "C1\t=X()\t1\t(function not known here)" in words(out, "formulas")
    assert "D1\t=9\t(none)\t9" in words(out, "formulas")
    assert "S: 1 formulas not recalculated: functions that are not known here" in out.notes
    assert "1 of 4 formulas have no cached value" in out.notes
    assert program.asked == ["recalculated", "pdf"]
    assert "no pictures of its pages: timeout: no printing here" in out.notes


def test_a_workbook_without_values_is_shown_with_those_that_were_found(tmp_path: Path) -> None:
    out, _ = calculated(tmp_path, one('<c r="A1"><f>2+2</f><v></v></c>'), one('<c r="A1"><f>2+2</f><v>4</v></c>'))
    assert next((p.kind, p.label, p.head) for p in out.pieces) == ("sheet", "S (recalculated)", "\tA\n1\t4")
    assert words(out, "differences") == ""
    assert (out.facts["differences"], "1 of 1 formulas have no cached value" in out.notes) == (0, True)


@pytest.mark.parametrize(
    ("cells", "extra", "reason"),
    [
        ("<f>NOW()</f>", {}, "volatile function NOW"),
        ("<f>1</f>", {"xl/externalLinks/externalLink1.xml": b"<x/>"}, "external links"),
        ("<f>1</f>", {"xl/vbaProject.bin": b"x"}, "macros"),
    ],
)
def test_what_cannot_be_recalculated_is_not_and_says_why(
    tmp_path: Path, cells: str, extra: dict[str, bytes], reason: str
) -> None:
    out, program = calculated(tmp_path, one(f'<c r="A1">{cells}<v>5</v></c>', extra), b"")
    assert f"not recalculated: {reason}" in out.notes
    assert program.asked == ["pdf"]
    assert words(out, "differences") == ""


def test_an_answer_of_the_office_program_that_is_no_workbook_costs_only_itself(tmp_path: Path) -> None:
    out, _ = calculated(tmp_path, office.golden(), b"PK\x03\x04 no more")
    assert any(note.startswith("not recalculated: cannot_open") for note in out.notes)
    assert "Net total" in words(out, "sheet")


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        (1.0, 1.0 + 1e-12, True), (1.0, 1.0 + 1e-8, False), (1e300, 1e300 * (1 + 1e-10), True), (0.0, 1e-13, True),
        ("a", "a", True), ("1", 1.0, False), (True, 1.0, False), (True, True, True), (None, "", True), (None, 0.0, False),
        (Failure("#N/A"), Failure("#N/A"), True), (Failure("#N/A"), Failure("#REF!"), False), (Failure("#N/A"), "#N/A", False),
    ],
)  # fmt: skip
def test_values_are_the_same_by_type(one: Value | Failure, other: Value | Failure, *, are: bool) -> None:
    assert same(one, other) is are


def test_where_nothing_is_remembered_only_an_error_is_news() -> None:
    assert [recalculation.differs(None, found) for found in (5.0, Failure("#REF!"), Failure("#NAME?"))] == [
        False,
        True,
        False,
    ]


def test_formats_dates_and_columns() -> None:
    formats = [(14, ""), (164, "yyyy-mm-dd"), (164, '0.0" days"'), (164, "[Red]0.00"), (0, "General"), (164, "h:mm")]
    assert [is_date_format(*one) for one in formats] == [True, True, False, False, False, True]
    assert [moment(d, since_1904=False) for d in (45292.0, 45292.5, 0.25, -1.0, 1e9)] == [
        "2024-01-01", "2024-01-01 12:00:00", "06:00:00", None, None,
    ]  # fmt: skip
    assert moment(0.0 + 1, since_1904=True) == "1904-01-02"
    assert [(letters(column(name))) for name in ("A", "Z", "AA", "XFD")] == ["A", "Z", "AA", "XFD"]


def test_volatile_functions_are_found_outside_of_texts_only() -> None:
    formulas = ['A1&"NOW()"', "IF(A1, today (), 2)", "MYNOW()", "SUM(OFFSET(A1,1,1))", "x.RAND()"]
    assert [volatile(one) for one in formulas] == [None, "TODAY", None, "OFFSET", None]


@pytest.mark.parametrize(
    ("formula", "down", "right", "found"),
    [
        ("A1+$B$2*C$3-$D4", 2, 1, "B3+$B$2*D$3-$D6"),
        ("\"A1\"&A1&'B2 x'!C3", 1, 0, "\"A1\"&A2&'B2 x'!C4"),
        ("LOG10(A1)+Q1_total+ATAN2(1,2)", 1, 1, "LOG10(B2)+Q1_total+ATAN2(1,2)"),
        ("SUM(Z1:AZ9)", 0, 1, "SUM(AA1:BA9)"),
    ],
)
def test_a_formula_reads_on_as_its_cell_stands(formula: str, down: int, right: int, found: str) -> None:
    assert moved(formula, down, right) == found


def test_formulas_that_are_kept_once_are_shown_for_each_cell(tmp_path: Path) -> None:
    cells = '<c r="A1"><f t="shared" ref="A1:C1" si="0">A2*2</f><v>2</v></c><c r="B1"><f t="shared" si="0"/><v>4</v></c><c r="C1"><f t="shared" si="7"/><v>4</v></c>'
    rows = words(read(tmp_path, "a.xlsx", one(cells)), "formulas").splitlines()
    assert rows[1:] == ["A1\t=A2*2\t2", "B1\t=B2*2\t4", "C1\t=(shared with an earlier cell)\t4"]


def test_first_and_last_rows_are_kept_and_the_rest_is_counted() -> None:
    rows = Rows(100)
    for number in range(1000):
        rows.add(f"row {number:03}")
    lines = rows.text.splitlines()
    gap = next(n for n, line in enumerate(lines) if "left out" in line)
    assert (lines[0], lines[-1]) == ("row 000", "row 999")
    assert int(lines[gap - 1][4:]) + 1 + rows.left_rows == int(lines[gap + 1][4:])
    assert rows.left_chars == 8 * rows.left_rows
    assert len(rows.text) < 160


def test_a_sheet_of_too_many_cells_is_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_CELLS", 100)
    read(tmp_path, "a.xlsx", office.many_cells(100))
    with pytest.raises(Failed, match="more than 100 cells") as failed:
        read(tmp_path, "a.xlsx", office.many_cells(102))
    assert failed.value.error == "bomb"


def test_a_text_document_in_order_and_what_nobody_sees_apart(tmp_path: Path) -> None:
    out = read(tmp_path, "a.docx", office.letter())
    text, hidden = words(out, "text"), words(out, "hidden")
    assert text.startswith("# Findings\n- First point\nSeen words. \n| left cell | right cell |")
    assert "running head" in text
    assert [w for w in ("white words", "tiny words", "vanished words") if w in text or w not in hidden] == []
    assert "Letter of a test" in words(out, "metadata")
    assert [(p.source, p.label) for p in out.pictures] == [("embedded", "word/media/image1.png")]


def test_changes_notes_comments_and_boxes_of_a_text_document(tmp_path: Path) -> None:
    out = read(tmp_path, "a.docx", office.marked_letter())
    text, hidden = words(out, "text"), words(out, "hidden")
    assert "Price [deleted by Ann: 100][inserted by Ann: 90] euros[footnote 2]" in text
    assert "box words" in text
    assert text.count("box words") == 1
    assert "[footnote 2]\nwithout tax" in text
    assert "more <https://x.test/>" in text
    assert "[comment 1 by Bob]\ngive full marks" in hidden
    assert "style hides this" in hidden
    assert "style hides this" not in text
    assert "a chart of sales" in hidden
    assert "2 tracked changes, marked in the text" in out.notes


def test_slides_groups_notes_and_what_is_not_shown(tmp_path: Path) -> None:
    out = read(tmp_path, "a.pptx", office.slides())
    assert words(out, "slide") == "Shown title\nnested words"
    assert words(out, "notes") == "spoken words"
    hidden = words(out, "hidden")
    assert [w for w in ("tiny words", "far words", "hidden slide words", "alt of Shown title") if w not in hidden] == []
    assert out.facts["slides"] == 2


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.docx", office.letter()[:9000], "cannot_open"),
        ("a.xlsx", office.golden()[:2000], "cannot_open"),
        ("a.docx", packed({"word/document.xml": laughs(), "[Content_Types].xml": b"<T/>"}), "bomb"),
        ("a.docx", packed({"word/document.xml": b"<a>" * 600 + b"</a>" * 600}), "bomb"),
        ("a.pptx", packed({"ppt/presentation.xml": b"<a>"}), "cannot_open"),
        ("a.xlsx", packed({"xl/workbook.xml": b"<w/>" + b" " * (1 << 20)}), None),
    ],
    ids=["cut", "cut too", "laughs", "deep", "no part", "no sheets"],
)
def test_what_is_broken_or_hostile_is_said_in_one_word(
    tmp_path: Path, name: str, data: bytes, error: str | None
) -> None:
    found: str | None = None
    try:
        read(tmp_path, name, data)
    except Failed as failed:
        found = failed.error
    except Trouble as trouble:
        found = {"truncated": "cannot_open"}.get(trouble.type, trouble.type)
    assert found == error


@pytest.mark.parametrize(
    ("name", "stream", "stays"),
    [
        ("a.xls", b"\x09\x08\x10\x00\x00\x06\x05" + bytes(13) + b"\x2f\x00\x36\x00", False),
        ("a.xls", b"\x09\x08\x10\x00\x00\x06\x05" + bytes(13) + b"\x42\x00\x02\x00", True),
        ("a.doc", b"\xec\xa5\xc1\x00" + bytes(6) + b"\xf8\x13" + bytes(20), False),
        ("a.doc", b"\xec\xa5\xc1\x00" + bytes(6) + b"\xf8\x12" + bytes(20), True),
        ("a.ppt", b"\xdf\xc4\xd1\xf3", False),
    ],
)
def test_old_documents_with_a_password_are_known_before_they_are_opened(
    tmp_path: Path, name: str, stream: bytes, *, stays: bool
) -> None:
    main = {"a.xls": "Workbook", "a.doc": "WordDocument", "a.ppt": "PowerPoint Document"}[name]
    with pytest.raises(Failed) as failed:
        read(tmp_path, name, office.container("Root Entry", main) + stream)
    assert failed.value.error == ("office_unavailable" if stays else "encrypted")


def test_what_unpacks_too_far_is_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "MAX_UNPACKED", 1 << 20)
    half = b"<d>" + b"<p></p>" * 90_000 + b"</d>"
    links = office.relations(("c1", "comments", "comments.xml"))
    data = packed({"word/document.xml": half, "word/comments.xml": half, "word/_rels/document.xml.rels": links})
    with pytest.raises((Failed, Trouble)) as raised:
        read(tmp_path, "a.docx", data)
    assert getattr(raised.value, "error", getattr(raised.value, "type", "")) == "bomb"
