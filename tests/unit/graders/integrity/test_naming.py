"""What an instruction names, and which delivered path is meant."""

import pytest

from service.domain.tasks import FileRef, TaskManifest
from service.graders.integrity.naming import is_meant, named_files

SHA = "0" * 64


def task(instruction: str, *visible: str, collect: tuple[str, ...] = ("output",)) -> TaskManifest:
    files = [FileRef(path=path, sha256=SHA, size_bytes=1) for path in visible]
    return TaskManifest(name="t", instruction=instruction, visible=files, collect=list(collect))


@pytest.mark.parametrize(
    ("instruction", "named"),
    [
        ("Write report.docx and budget.xlsx.", ["report.docx", "budget.xlsx"]),
        ('Save it as `Final Report.docx`, then "notes for me.md".', ["Final Report.docx", "notes for me.md"]),
        ("Put it in /workspace/output/site/index.html, please", ["output/site/index.html"]),
        ("See https://example.com/files/paper.pdf and mail me@example.com.", []),
        ("Version 3.11 of Example.com, i.e. the new one, costs 4.50 (cf. p.12).", []),
        ("A file per month: report_*.csv and <name>.pdf, all .docx", []),
        ("`report.docx` again: report.docx", ["report.docx"]),
        ("Never touch ../secrets.txt or /etc/hosts.txt", []),
        ("Übersicht.PDF und **Größe.csv**", ["Übersicht.PDF", "Größe.csv"]),
    ],
)
def test_named_files(instruction: str, named: list[str]) -> None:
    assert named_files(task(instruction)) == named


def test_what_the_task_brings_is_not_asked_for() -> None:
    given = task(
        "Read data.csv and in/prices.xlsx; write result.csv, and output/data.csv.", "data.csv", "in/prices.xlsx"
    )
    assert named_files(given) == ["result.csv", "output/data.csv"]


def test_an_instruction_of_nothing_but_names_is_bounded() -> None:
    text = " ".join(f"f{n}.csv" for n in range(5000)) + '"' * 20_000 + "a/" * 20_000 + "*" * 20_000
    assert len(named_files(task(text))) == 200


@pytest.mark.parametrize(
    ("path", "pattern", "meant"),
    [
        ("output/a/report.docx", "report.docx", True),
        ("output/report.docx", "output/report.docx", True),
        ("output/site/index.html", "site/index.html", True),
        ("output/other/site/index.html", "site/index.html", False),
        ("output/report-3.csv", "report-*.csv", True),
        ("output/a/b.csv", "*/b.csv", True),
        ("output/a/c/b.csv", "*/b.csv", False),
        ("output/report.docx.exe", "report.docx", False),
        ("output/Zu\u0308rich.csv", "Zürich.csv", True),
    ],
)
def test_is_meant(path: str, pattern: str, meant: bool) -> None:
    assert is_meant(path, pattern, ["output"]) is meant
