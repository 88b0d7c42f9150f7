"""Method ``test_cases``: a program run on hidden inputs, text answers and multiple choice; a point where all is right."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing
from service.graders.contract import GraderFault, GradingInput
from service.graders.test_cases.answers import judge_answer
from service.graders.test_cases.results import Result, criterion
from service.graders.test_cases.runner import Runner
from service.graders.test_cases.settings import TestCasesSettings
from service.graders.test_cases.submission import Unusable, read_answers, read_program
from service.graders.test_cases.tests_file import MAX_FILE_BYTES, TestItem, TestsFile


class TestCasesGrader:
    __test__ = False
    method = "test_cases"
    version = "1"
    queue: GradingQueue = "rooms"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        parsed = parsing.parsed(TestCasesSettings, settings)
        if parsed.tests not in {f.path for f in task.hidden}:
            raise Invalid("unknown_hidden_asset", f"the task has no hidden file {parsed.tests!r}")
        for path in _named(parsed, settings):
            if not any(path == root or path.startswith(f"{root}/") for root in task.collect):
                raise Invalid("file_not_collected", f"{path!r} is below none of the task's collect roots")

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(TestCasesSettings, given.settings)
        file = await asyncio.to_thread(_tests, given, settings.tests)
        code = [t for t in file.tests if t.kind == "code"]
        asked = [t for t in file.tests if t.kind != "code"]
        results = await asyncio.to_thread(_answered, given, settings, asked)
        ran, about = await _run(given, settings, code)
        results |= ran
        return _verdict(file, results, {"comparator": settings.comparator, **about})


async def _run(
    given: GradingInput, settings: TestCasesSettings, items: Sequence[TestItem]
) -> tuple[dict[str, Result], dict[str, Any]]:
    if not items:
        return {}, {}
    if given.rooms is None:
        raise GraderFault("grader_unavailable", "this grader process has no sandbox engine")
    try:
        program, source = await asyncio.to_thread(read_program, given, settings)
    except Unusable as error:
        return {t.id: error.result for t in items}, {}
    runner = Runner(given.rooms, settings, program)
    results = await runner.run(items)
    about = {
        "program": source,
        "language": settings.language,
        "per_test_s": settings.per_test_s,
        "memory_bytes": settings.memory_bytes,
        "rooms": runner.rooms_used,
    }
    return {t.id: r for t, r in zip(items, results, strict=True)}, about


def _answered(given: GradingInput, settings: TestCasesSettings, items: Sequence[TestItem]) -> dict[str, Result]:
    if not items:
        return {}
    try:
        answers = read_answers(given, settings.answers)
    except Unusable as error:
        return {t.id: error.result for t in items}
    return {t.id: judge_answer(t, answers, settings.comparator) for t in items}


def _verdict(file: TestsFile, results: Mapping[str, Result], about: dict[str, Any]) -> Verdict:
    rows = [criterion(t, results[t.id]) for t in file.tests]
    score, most = (sum(float(r[name]) for r in rows) for name in ("score", "max_score"))
    wrong = sum(not r["passed"] for r in rows)
    detail = {"tests": len(rows), "wrong": wrong, "solved": wrong == 0, "points": score, "percent": 100 * score / most}
    if file.passing_score is not None:
        detail["certified"] = score >= file.passing_score
    return Verdict(VerdictState.GRADED, score=score, max_score=most, criteria=rows, detail={**detail, **about})


def _named(parsed: TestCasesSettings, settings: Mapping[str, Any]) -> list[str]:
    """Return the files that the settings name; all of them by default, where the settings name none."""
    program = parsed.submission if "submission" in settings or "answers" not in settings else []
    answers = [parsed.answers] if "answers" in settings or "submission" not in settings else []
    return [*program, *answers]


def _tests(given: GradingInput, path: str) -> TestsFile:
    with given.open_hidden(path) as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise GraderFault("tests_unusable", f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        return TestsFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = json.dumps(list(first["loc"]))
        raise GraderFault("tests_unusable", f"{path}: {where}: {first['msg']}") from error
