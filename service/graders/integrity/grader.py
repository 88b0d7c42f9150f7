"""Method ``integrity``: a point for each check that the integrity report answers with yes, and for each file that is there.

RLI's largest class of rejections is broken and missing files: this says so without a judge.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from service.domain.artifacts import REASONS, ArtifactEntry, EntryKind
from service.domain.grading_plans import GradingQueue
from service.domain.integrity import FileReport, IntegrityReport, ProblemType
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing
from service.graders.contract import INTEGRITY_UNAVAILABLE, GraderBusy, GraderFault, GradingInput
from service.graders.integrity.naming import any_meant, is_meant, named_files
from service.graders.integrity.settings import IntegritySettings

NAMED_IN_A_REASON = 10
_UNOPENED = frozenset(
    {
        ProblemType.TRUNCATED,
        ProblemType.CANNOT_OPEN,
        ProblemType.ENCRYPTED,
        ProblemType.BOMB,
        ProblemType.TIMEOUT,
    }
)
_OTHER_CHECKS = (ProblemType.EMPTY, ProblemType.TYPE_MISMATCH)


class IntegrityGrader:
    method = "integrity"
    version = "1"
    queue: GradingQueue = "rooms"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:  # noqa: ARG002 - any task will do
        parsing.parsed(IntegritySettings, settings)

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(IntegritySettings, given.settings)
        if given.task is None:
            raise GraderFault("task_missing", "the method needs the task")
        if given.integrity is None:
            raise GraderBusy(INTEGRITY_UNAVAILABLE, "the deliverable's integrity report could not be made yet")
        return verdict(settings, given.task, given.entries, given.integrity)


def verdict(
    settings: IntegritySettings, task: TaskManifest, entries: Sequence[ArtifactEntry], report: IntegrityReport
) -> Verdict:
    """Decide by the report alone. Nothing delivered passes no check."""
    files = [f for f in report.files if not any_meant(f.path, settings.ignore, task.collect)]
    named: list[str] = named_files(task) if settings.from_instruction else []
    wanted: list[str] = list(dict.fromkeys([*settings.expected, *named]))
    criteria: list[dict[str, Any]] = []
    for check in settings.checks:
        if check == "complete":
            criteria += _complete(wanted, entries, task.collect)
        else:
            criteria.append(_over_all(check, files, settings, task.collect))
    passed = sum(bool(c["passed"]) for c in criteria)
    detail = {
        "sound": passed == len(criteria),
        "files": len(report.files) + report.not_listed,
        "not_looked_at": report.not_listed + sum(f.opens is None for f in report.files),
        "not_sealed": sum(e.kind not in (EntryKind.FILE, EntryKind.DIRECTORY) for e in entries),
        "malformed": sum(_has(f, ProblemType.MALFORMED) for f in files),
        "expected": len(wanted),
        "missing": sum(not c["passed"] for c in criteria if c["id"].startswith("complete:")),
    }
    return Verdict(
        VerdictState.GRADED, score=float(passed), max_score=float(len(criteria)), criteria=criteria, detail=detail
    )


def _over_all(
    check: str, files: Sequence[FileReport], settings: IntegritySettings, roots: Sequence[str]
) -> dict[str, Any]:
    if not files:
        return _criterion(check, "nothing was delivered")
    fails = _FAILS[check]
    bad = [f.path for f in files if fails(f)]
    if check == "non_empty":
        bad = [path for path in bad if not any_meant(path, settings.may_be_empty, roots)]
    return _criterion(check, f"{_WORDS[check]}: {_names(bad)}" if bad else "")


def _complete(wanted: Sequence[str], entries: Sequence[ArtifactEntry], roots: Sequence[str]) -> list[dict[str, Any]]:
    if not wanted:
        there = any(e.kind is EntryKind.FILE for e in entries)
        return [_criterion("complete", "" if there else "nothing was delivered")]
    return [_criterion(f"complete:{pattern}", _missing(pattern, entries, roots)) for pattern in wanted]


def _missing(pattern: str, entries: Sequence[ArtifactEntry], roots: Sequence[str]) -> str:
    """Return why the file is not there, or an empty text."""
    meant = [e for e in entries if e.kind is not EntryKind.DIRECTORY and is_meant(e.path, pattern, roots)]
    if any(e.kind is EntryKind.FILE for e in meant):
        return ""
    return REASONS[meant[0].kind] if meant else "not delivered"


def _criterion(id: str, reason: str) -> dict[str, Any]:
    score = 0.0 if reason else 1.0
    return {"id": id, "score": score, "max_score": 1.0, "passed": not reason, "reason": reason}


def _names(paths: Sequence[str]) -> str:
    shown = [json.dumps(path[:200]) for path in paths[:NAMED_IN_A_REASON]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _has(file: FileReport, *types: ProblemType) -> bool:
    return any(p.type in types for p in file.problems)


def _does_not_open(file: FileReport) -> bool:
    """One defect counts once: emptiness and a wrong type have checks of their own. Where nobody looked, nothing is held."""
    return _has(file, *_UNOPENED) or (file.opens is False and not _has(file, *_OTHER_CHECKS))


_FAILS: Mapping[str, Callable[[FileReport], bool]] = {
    "opens": _does_not_open,
    "non_empty": lambda f: f.size_bytes == 0 or _has(f, ProblemType.EMPTY),
    "right_type": lambda f: _has(f, ProblemType.TYPE_MISMATCH),
}
_WORDS = {"opens": "does not open", "non_empty": "empty", "right_type": "not what its name says"}
