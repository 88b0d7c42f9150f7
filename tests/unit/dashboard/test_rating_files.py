"""Files on a rater's page: tables as tables, text by lines, media to the browser, the rest by name; all of it bounded."""

from typing import Any

import pytest

from service.dashboard import rating_files
from service.domain.evidence import EvidenceFile, Omitted, Part
from service.lifecycle.campaigns.showing import ShownFile

SHA = "0" * 64


def evidence(kind: str, *parts: Part) -> EvidenceFile:
    return EvidenceFile(path="x", sha256=SHA, size_bytes=1, kind=kind, state="extracted", parts=parts)


def file(path: str, mime: str | None = None, **more: Any) -> ShownFile:
    return ShownFile(0, path, path, SHA, 1, mime, **more)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,"b\n,c"\n1,2\n', [["a", "b\n,c"], ["1", "2"]]),
        ("a;b,c;d\n1;2;3\n", [["a", "b,c", "d"], ["1", "2", "3"]]),
        ("a\tb\n", [["a", "b"]]),
        ("alone", [["alone"]]),
        ("", []),
    ],
)
def test_a_delimited_file_is_a_table_whatever_delimits_it(text: str, rows: list[list[str]]) -> None:
    (of_text,) = rating_files.of_text("x.csv", text.encode(), len(text))
    (of_evidence,) = rating_files.of_evidence(evidence("csv", Part(kind="table", text=text)))
    assert of_text.rows == of_evidence.rows == rows


def test_cells_of_sheets_and_databases_are_taken_as_they_come() -> None:
    sheet = Part(kind="sheet", label="Sheet1", text='\tA\tB\n1\t"x\t2')
    formulas = Part(kind="formulas", text="cell\tformula\nA1\t=1,2")
    rows = Part(kind="table", label="people", text='name\tage\nO"Hara\t3')
    found = [part.rows for part in rating_files.of_evidence(evidence("xlsx", sheet, formulas, rows))]
    assert found == [
        [["", "A", "B"], ["1", '"x', "2"]],
        [["cell", "formula"], ["A1", "=1,2"]],
        [["name", "age"], ['O"Hara', "3"]],
    ]


def test_what_is_shown_is_bounded_and_says_so() -> None:
    long = "\n".join(f"{n},{n}" for n in range(2000))
    (table,) = rating_files.of_text("x.csv", long.encode(), 10**9)
    assert (len(table.rows or ()), table.more) == (rating_files.MOST_ROWS, "The first 500 rows.")
    (wide,) = rating_files.of_text("x.csv", (",".join("x" * 1000) + "\n").encode(), 2000)
    assert [len(row) for row in wide.rows or ()] == [rating_files.MOST_COLUMNS]
    (code,) = rating_files.of_text("x.py", b"1\n" * 6000, 12_000)
    assert (len(code.lines or ()), code.more) == (rating_files.MOST_LINES, "The first 5000 of 6001 lines.")
    (cut,) = rating_files.of_text("x.txt", b"ab\xff\x00", 10**6)
    assert (cut.lines, cut.more) == (["ab\ufffd\ufffd"], "The first 4 of 1000000 bytes.")
    assert rating_files.left_out(Omitted(chars=3, images=1)).startswith("Not shown here: 3 characters, 1 pictures.")
    assert rating_files.left_out(Omitted()) == ""


@pytest.mark.parametrize(
    ("path", "mime", "shown"),
    [
        ("a.png", "image/png", "image"),
        ("a.svg", "image/svg+xml", None),
        ("a.tiff", "image/tiff", None),
        ("a.mp3", "audio/mpeg", "audio"),
        ("a.webm", "video/webm", "video"),
        ("a.html", "text/html", None),
        ("a.bin", None, None),
    ],
)
def test_only_what_runs_nothing_is_left_to_the_browser(path: str, mime: str | None, shown: str | None) -> None:
    assert rating_files.media(file(path, mime)) == shown


def test_a_file_with_evidence_is_not_read_again() -> None:
    assert rating_files.is_text(file("a.py"))
    assert not rating_files.is_text(file("a.docx"))
    assert not rating_files.is_text(file("a.py", evidence=evidence("code")))
