"""Method ``exact``: points for each answer that equals the expected one; nothing between right and wrong."""

import asyncio
from collections.abc import Mapping
from typing import Any

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing, strict_json
from service.graders.contract import GraderFault, GradingInput
from service.graders.exact import compare
from service.graders.exact.settings import AnswerRule, ExactSettings


class ExactGrader:
    method = "exact"
    version = "1"
    queue: GradingQueue = "rooms"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        parsed = parsing.parsed(ExactSettings, settings)
        if parsed.expected.hidden not in {f.path for f in task.hidden}:
            raise Invalid("unknown_hidden_asset", f"the task has no hidden file {parsed.expected.hidden!r}")
        if not any(parsed.file.startswith(f"{root}/") for root in task.collect):
            raise Invalid("file_not_collected", f"{parsed.file!r} is below none of the task's collect roots")

    async def grade(self, given: GradingInput) -> Verdict:
        return await asyncio.to_thread(_grade, given)


def _grade(given: GradingInput) -> Verdict:
    settings = parsing.stored(ExactSettings, given.settings)
    expected = _expected(given, settings)
    try:
        with given.open_deliverable(_entry(given, settings.file)) as stream:
            answers = strict_json.read_object(stream)
    except strict_json.NotUsable as error:
        criteria = [_criterion(rule, passed=False, reason=f"{settings.file}: {error}") for rule in settings.answers]
    else:
        criteria = [_judge(rule, answers, expected[rule.id]) for rule in settings.answers]
    score, most = (sum(float(c[name]) for c in criteria) for name in ("score", "max_score"))
    return Verdict(VerdictState.GRADED, score=score, max_score=most, criteria=criteria)


def _expected(given: GradingInput, settings: ExactSettings) -> dict[str, Any]:
    try:
        with given.open_hidden(settings.expected.hidden) as stream:
            expected = strict_json.read_object(stream)
    except strict_json.NotUsable as error:
        raise GraderFault("expected_unusable", f"{settings.expected.hidden}: {error}") from error
    for rule in settings.answers:
        if rule.id not in expected or not compare.fits(expected[rule.id], rule):
            raise GraderFault("expected_unusable", f"expected value of {rule.id!r} is missing or not a {rule.type}")
        if rule.type == "list" and len(expected[rule.id]) > compare.MAX_LIST:
            raise GraderFault(
                "expected_unusable", f"expected list of {rule.id!r} has more than {compare.MAX_LIST} items"
            )
    return expected


def _entry(given: GradingInput, path: str) -> ArtifactEntry:
    entry = next((e for e in given.entries if e.path == path), None)
    if entry is None:
        raise strict_json.NotUsable("not delivered")
    if entry.kind is not EntryKind.FILE:
        raise strict_json.NotUsable(f"not a sealed regular file ({entry.kind.value})")
    if entry.size_bytes > strict_json.MAX_BYTES:
        raise strict_json.NotUsable(f"larger than {strict_json.MAX_BYTES} bytes")
    return entry


def _judge(rule: AnswerRule, answers: dict[str, Any], expected: Any) -> dict[str, Any]:
    if rule.id not in answers:
        return _criterion(rule, passed=False, reason="no answer")
    value = answers[rule.id]
    if not compare.fits(value, rule):
        wanted = "one of the choices" if rule.type == "choice" else f"of type {rule.type}"
        return _criterion(rule, passed=False, reason=f"{compare.quote(value)} is not {wanted}")
    passed = compare.equal(value, expected, rule)
    return _criterion(rule, passed=passed, reason="" if passed else f"{compare.quote(value)} is not the expected value")


def _criterion(rule: AnswerRule, *, passed: bool, reason: str) -> dict[str, Any]:
    return {
        "id": rule.id,
        "score": rule.points if passed else 0.0,
        "max_score": rule.points,
        "passed": passed,
        "reason": reason,
    }
