"""Grading by rubrics in memory: the set that most tests use, and judges that fail what they are told to."""

from typing import Any

from service.domain.verdicts import Verdict
from service.graders.contract import Question
from service.graders.rubric_chain.grader import RubricChainGrader
from service.testing.judges import ScriptedJudges
from tests.unit.graders.judged import delivered, given, judges_saying, rubric_answer

RUBRICS: dict[str, Any] = {
    "rubrics": [
        {"rubric": "Totals are right", "weight": 10, "criterion": ["North is 120", "South is 80", "The sum is 200"]},
        {"rubric": "It is explained", "weight": 6, "criterion": ["A paragraph says why"]},
        {"rubric": "It has a summary", "weight": 4, "criterion": ["Half a page", "No jargon"]},
    ]
}
ONE: dict[str, Any] = {"rubrics": [RUBRICS["rubrics"][0]]}
FILES = [delivered("output/report.md", "North 120, South 80, sum 200"), delivered("output/notes.md", "because")]


async def grade(judges: ScriptedJudges | None, files: Any = None, **changes: Any) -> Verdict:
    settings = changes.pop("settings", {})
    rubrics = changes.pop("rubrics", RUBRICS)
    files = FILES if files is None else files
    return await RubricChainGrader().grade(given(settings, files, judges, {"RUBRICS.json": rubrics}, **changes))


def all_but(*failing: tuple[str, int]) -> ScriptedJudges:
    """Judges that fail these criteria: (text of the rubric, number)."""

    def say(question: Question) -> Any:
        return rubric_answer(question, lambda n: not any(text in question.system and n == m for text, m in failing))

    return judges_saying(say)
