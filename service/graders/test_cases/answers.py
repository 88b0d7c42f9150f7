"""Text answers and multiple choice, from one JSON file of the deliverable. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from service.graders.test_cases.compare import choice_letter, equal
from service.graders.test_cases.results import Cause, Result
from service.graders.test_cases.settings import Comparator
from service.graders.test_cases.tests_file import TestItem


def judge_answer(item: TestItem, answers: Mapping[str, Any], comparator: Comparator) -> Result:
    value = answers.get(item.id)
    if value is None or value == "":
        return Result.failed(Cause.NO_ANSWER)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if item.kind == "choice":
        letter = choice_letter(text, item.choices)
        if letter is None:
            return Result.failed(Cause.UNPARSABLE_ANSWER, "neither a letter nor the text of exactly one choice")
        passed = letter == item.expected.upper()
    else:
        passed = equal(text, item.expected, comparator)
    return Result(None) if passed else Result.failed(Cause.WRONG_ANSWER)
