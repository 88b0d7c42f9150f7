"""Verdicts from an integrity report alone."""

import io
from typing import Any

import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Invalid
from service.domain.integrity import FileReport, IntegrityReport, Problem, ProblemType
from service.domain.tasks import GraderSpec, TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import registry
from service.graders.contract import GraderBusy, GradingInput
from service.graders.integrity.grader import IntegrityGrader

TASK = TaskManifest(name="t", instruction="Write report.docx and data.csv.")
GOOD = FileReport(path="output/report.docx", size_bytes=10, opens=True)


def file(path: str, *problems: ProblemType, opens: bool | None = False, size: int = 10) -> FileReport:
    return FileReport(path=path, size_bytes=size, opens=opens, problems=tuple(Problem(type=p) for p in problems))


async def grade(
    *files: FileReport, entries: list[ArtifactEntry] | None = None, task: TaskManifest = TASK, **settings: Any
) -> Verdict:
    sealed = [ArtifactEntry(f.path, EntryKind.FILE, f.size_bytes) for f in files]
    report = IntegrityReport(files=files)
    given = GradingInput(
        settings, sealed if entries is None else entries, _nothing, lambda _: _nothing(""), report, task=task
    )
    return await IntegrityGrader().grade(given)


def _nothing(_: str) -> io.BytesIO:
    raise AssertionError("the method opens nothing")


def failed(verdict: Verdict) -> dict[str, str]:
    assert verdict.state is VerdictState.GRADED
    assert (verdict.score, verdict.max_score) == (sum(c["passed"] for c in verdict.criteria), len(verdict.criteria))
    return {c["id"]: c["reason"] for c in verdict.criteria if not c["passed"]}


async def test_a_sound_deliverable_passes_every_check() -> None:
    verdict = await grade(GOOD, file("output/data.csv", opens=True))
    assert [c["id"] for c in verdict.criteria] == [
        "opens", "complete:report.docx", "complete:data.csv", "non_empty", "right_type",
    ]  # fmt: skip
    assert (verdict.score, verdict.max_score, verdict.detail["sound"]) == (5.0, 5.0, True)


@pytest.mark.parametrize(
    ("problem", "opens", "check"),
    [
        (ProblemType.CANNOT_OPEN, False, "opens"),
        (ProblemType.TRUNCATED, False, "opens"),
        (ProblemType.TRUNCATED, True, "opens"),
        (ProblemType.ENCRYPTED, False, "opens"),
        (ProblemType.BOMB, False, "opens"),
        (ProblemType.TIMEOUT, None, "opens"),
        (ProblemType.MALFORMED, False, "opens"),
        (ProblemType.EMPTY, False, "non_empty"),
        (ProblemType.TYPE_MISMATCH, False, "right_type"),
        (ProblemType.MALFORMED, True, None),
        (ProblemType.CHECKER_FAILED, None, None),
        (ProblemType.TOO_LARGE_TO_CHECK, None, None),
    ],
)
async def test_one_defect_fails_one_check(problem: ProblemType, opens: bool | None, check: str | None) -> None:
    verdict = await grade(GOOD, file("output/data.csv", problem, opens=opens))
    assert list(failed(verdict)) == ([] if check is None else [check])


async def test_a_missing_file_and_a_link_in_its_place_are_not_there() -> None:
    link = ArtifactEntry("output/data.csv", EntryKind.SYMLINK)
    sealed = ArtifactEntry(GOOD.path, EntryKind.FILE, 10)
    assert failed(await grade(GOOD)) == {"complete:data.csv": "not delivered"}
    assert failed(await grade(GOOD, entries=[sealed, link])) == {
        "complete:data.csv": "a symbolic link: links are listed and never followed"
    }
    folder = ArtifactEntry("output/data.csv", EntryKind.DIRECTORY)
    assert failed(await grade(GOOD, entries=[sealed, folder])) == {"complete:data.csv": "not delivered"}


async def test_nothing_delivered_passes_nothing() -> None:
    for task in (TASK, TaskManifest(name="t", instruction="Do something.")):
        verdict = await grade(task=task)
        assert verdict.score == 0
        assert verdict.max_score == len(verdict.criteria) > 3


async def test_settings_name_files_and_what_may_be_empty_or_ignored() -> None:
    files = (
        file("output/pkg/__init__.py", ProblemType.EMPTY, size=0),
        file("output/plot-1.png", opens=True),
        file("output/debug.log", ProblemType.EMPTY, size=0),
    )
    settings: dict[str, Any] = {"expected": ["plot-*.png", "pkg/__init__.py", "notes.md"], "from_instruction": False}
    verdict = await grade(*files, **settings, ignore=["*.log"])
    assert failed(verdict) == {"complete:notes.md": "not delivered"}
    assert list(failed(await grade(*files, **settings))) == ["complete:notes.md", "non_empty"]
    assert list(failed(await grade(*files, **settings, may_be_empty=[], checks=["non_empty"]))) == ["non_empty"]


async def test_hostile_names_are_quoted_and_counted() -> None:
    bad = [file(f"output/\x1b[2J\u202e{n}.pdf", ProblemType.CANNOT_OPEN) for n in range(30)]
    reason = failed(await grade(*bad, task=TaskManifest(name="t", instruction="x")))["opens"]
    assert reason.isascii()
    assert reason.isprintable()
    assert reason.endswith("and 20 more")


async def test_without_a_report_there_is_no_verdict() -> None:
    given = GradingInput({}, [], _nothing, lambda _: _nothing(""), None, task=TASK)
    with pytest.raises(GraderBusy) as caught:
        await IntegrityGrader().grade(given)
    assert caught.value.type == "integrity_unavailable"


@pytest.mark.parametrize(
    "settings",
    [
        {"checks": []},
        {"checks": ["opens", "opens"]},
        {"checks": ["pretty"]},
        {"expected": ["../x"]},
        {"expected": ["/etc/passwd"]},
        {"colour": 1},
    ],
)
def test_bad_settings_are_refused_with_the_task(settings: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        registry.check(GraderSpec(method="integrity", settings=settings), TASK)
    assert caught.value.type == "bad_grader_settings"
