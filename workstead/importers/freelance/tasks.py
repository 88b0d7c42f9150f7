"""From a checked item to a task. Gold answers go into hidden files only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workstead.importers.drafts import Draft, slug
from workstead.importers.fields import plain
from workstead.importers.files import Contents
from workstead.importers.freelance.durations import parse_duration
from workstead.importers.freelance.instruction import (
    LANGUAGES,
    LETTERS,
    answers_text,
    choice_question,
    program_text,
    text_question,
)
from workstead.importers.freelance.prices import pay_type, posted, reported
from workstead.importers.freelance.review import read_solution
from workstead.importers.freelance.shapes import Answers, Choice, Program
from workstead.importers.settings import CommonSettings

TESTS = "tests.json"
ANSWERS = "output/answers.json"
WALL_CLOCK_S = 3600.0
LIMITS: Mapping[str, float] = {"memory_bytes": 1 << 30, "disk_bytes": 256 << 20}
MAX_TESTS_BYTES = 64 << 20
"""What the grading method reads."""
NO_RULES: Mapping[str, str] = {}


class Settings(CommonSettings):
    disputed: Path | None = None
    """JSON file with the ids of contested items: an object, id → reason, or a list."""
    visibility: Literal["strict", "rule_only"] = "strict"
    """strict tells no rule of a transformation; rule_only tells those of the file `rules`."""
    rules: Path | None = None
    """JSON file with reviewed rules: item id → question id (st1, st2, …) → text."""
    solutions: Path | None = None
    """Folder with programs that solve items of shape A, `<id>.py`; they become hidden solutions for the oracle."""
    suite: Literal["all", "choice", "text"] = "all"
    """Which questions of shape B are asked."""
    comparator: Literal["exact", "trim", "lenient"] = "trim"
    """How outputs and texts are compared."""
    per_test_s: float = Field(default=10, ge=0.1, le=600)
    """Seconds for one test of a program."""
    language: Literal["python", "node", "php", "ruby", "bash", "perl"] = "python"
    """Language of the programs of shape A."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What people found about the source's items."""

    disputed: Mapping[str, str]
    rules: Mapping[str, Mapping[str, str]]


class TaskMaker:
    def __init__(self, settings: Settings, reviewed: Reviewed, contents: Contents) -> None:
        self._settings, self._reviewed, self._contents = settings, reviewed, contents

    def program(self, item: Program, draft: Draft) -> dict[str, Any]:
        """Return the task of an item of shape A."""
        s = self._settings
        file = LANGUAGES[s.language][1]
        tests = [
            {"id": f"t{i}", "kind": "code", "input": t.input, "expected": t.output, "points": 1}
            for i, t in enumerate(item.tests, 1)
        ]
        hidden = [self._tests_file({"tests": tests}, draft)]
        solution = read_solution(s.solutions, draft.key, Path(file).suffix)
        if solution is not None:
            hidden.append(self._contents.make(f"solution/output/{file}", solution))
        else:
            draft.note("no_reference_solution", "", "the source has no program that solves it; the oracle cannot run")
        return self._task(
            draft,
            program_text(item, s.language, s.per_test_s),
            hidden=hidden,
            grader={"language": s.language},
            facets=_facets("a", item.tags, "fixed"),
            price=posted(item.price, draft),
            wall_clock_s=WALL_CLOCK_S,
        )

    def answers(self, item: Answers, draft: Draft) -> dict[str, Any]:
        """Return the task of an item of shape B."""
        questions = list(self._questions(item, draft))
        tests = list(_tests(item, self._settings.suite))
        if not tests:
            draft.quarantine("no_tests", "/test_content", "an item without questions cannot be solved or failed")
        gold = {test["id"]: test["expected"] for test in tests}
        hidden = [
            self._tests_file({"tests": tests, "passing_score": _passing_score(item, tests)}, draft),
            self._contents.make_json(f"solution/{ANSWERS}", gold),
        ]
        metadata, limit = item.metadata, item.test_content.time_limit
        facets = _facets("b", metadata.tags, pay_type(metadata.pricing))
        return self._task(
            draft,
            answers_text(item, questions),
            visible=[self._contents.make_json("questions.json", questions)],
            hidden=hidden,
            grader={"answers": ANSWERS},
            facets={**facets, **({"time_limit": limit[:200]} if isinstance(limit, str) and limit else {})},
            price=reported(metadata.pricing, draft),
            wall_clock_s=self._wall_clock(limit, draft),
        )

    def _tests_file(self, value: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
        ref = self._contents.make_json(TESTS, value)
        if ref["size_bytes"] > MAX_TESTS_BYTES:
            draft.quarantine(
                "too_large", "", f"its tests have {ref['size_bytes']} bytes; {MAX_TESTS_BYTES} are allowed"
            )
        return ref

    def _questions(self, item: Answers, draft: Draft) -> Iterator[dict[str, Any]]:
        content, suite = item.test_content, self._settings.suite
        if suite != "text":
            yield from (choice_question(f"mc{i}", c) for i, c in enumerate(content.multiple_choice, 1))
        if suite == "choice":
            return
        told = self._settings.visibility == "rule_only"
        rules: Mapping[str, str] = self._reviewed.rules.get(draft.key, NO_RULES) if told else NO_RULES
        for i, text in enumerate(content.string_transformations, 1):
            if told and f"st{i}" not in rules:
                draft.note("no_rule", f"/test_content/string_transformations/{i - 1}", "no reviewed rule; none is told")
            yield text_question(f"st{i}", text, rules.get(f"st{i}"))

    def _wall_clock(self, limit: Any, draft: Draft) -> float:
        parsed = parse_duration(limit)
        if parsed is None and limit is not None:
            draft.note("bad_time_limit", "/test_content/time_limit", "not an amount of time; the default is used")
        return parsed or WALL_CLOCK_S

    def _task(
        self,
        draft: Draft,
        instruction: str,
        *,
        hidden: Sequence[dict[str, Any]],
        grader: Mapping[str, Any],
        facets: Mapping[str, Any],
        price: dict[str, Any] | None,
        wall_clock_s: float,
        visible: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        s = self._settings
        common = {"tests": TESTS, "comparator": s.comparator, "per_test_s": s.per_test_s}
        return {
            "name": f"freelance/{slug(draft.key)}",
            "instruction": instruction,
            "visible": list(visible),
            "hidden": list(hidden),
            "environment": s.environment or "base",
            "limits": s.limits({"wall_clock_s": wall_clock_s, **LIMITS}),
            "graders": [{"method": "test_cases", "settings": {**common, **grader}}],
            "facets": dict(facets),
            "price": price,
            "labels": {},
        }


def _facets(shape: str, tags: Sequence[str], paid: str) -> dict[str, Any]:
    named = [tag for tag in tags if tag.strip()]
    facets: dict[str, Any] = {"shape": shape, "pay_type": paid}
    return {**facets, "category": named[0], "tags": named} if named else facets


def _tests(item: Answers, suite: str) -> Iterator[dict[str, Any]]:
    content = item.test_content
    if suite != "text":
        for i, c in enumerate(content.multiple_choice, 1):
            yield _choice_test(f"mc{i}", c)
    if suite != "choice":
        for i, t in enumerate(content.string_transformations, 1):
            yield {
                "id": f"st{i}", "kind": "text", "input": t.input_text, "expected": t.expected_output,
                "points": plain(t.points),
            }  # fmt: skip


def _choice_test(key: str, c: Choice) -> dict[str, Any]:
    return {
        "id": key, "kind": "choice", "input": c.question, "choices": c.choices, "expected": c.correct_answer,
        "points": plain(c.points),
    }  # fmt: skip


def _passing_score(item: Answers, tests: Sequence[Mapping[str, Any]]) -> int | float:
    """Return the points that certify: the source's own, or its share of them where only one suite is asked."""
    content = item.test_content
    every = sum((t.points for t in (*content.multiple_choice, *content.string_transformations)), Decimal(0))
    asked = sum((Decimal(str(test["points"])) for test in tests), Decimal(0))
    return plain(content.passing_score * asked / every) if every else plain(content.passing_score)


def gold_is_a_choice(item: Answers) -> Iterator[str]:
    """Yield the pointer of each question whose gold letter names no choice."""
    for i, choice in enumerate(item.test_content.multiple_choice):
        if LETTERS.index(choice.correct_answer) >= len(choice.choices):
            yield f"/test_content/multiple_choice/{i}/correct_answer"
