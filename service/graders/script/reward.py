"""What a verifier leaves behind: its reward, and its report of single tests. Written by foreign code, read as data."""

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from service.domain.cleaning import clean_str
from service.graders import strict_json
from service.graders.script.settings import ScriptSettings

MAX_BYTES = 1 << 20
MAX_TESTS = 5000
NAME_CHARS, REASON_CHARS = 300, 1000
_PASSED, _SKIPPED = "passed", ("skipped", "pending")


class Unusable(ValueError):
    """The reward is none; the message says why and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Reward:
    score: float
    others: dict[str, float]
    """Further numbers of ``reward.json``."""


def read_reward(text: bytes | None, document: bytes | None, settings: ScriptSettings) -> Reward | None:
    """Return the reward of ``reward.json``, else of ``reward.txt``; null: neither is there. Raises Unusable."""
    if document is not None:
        numbers = _numbers(document)
        name = settings.reward if settings.reward in numbers or len(numbers) != 1 else next(iter(numbers))
        if name not in numbers:
            raise Unusable(f"reward.json has no number {settings.reward!r}")
        others = {key: value for key, value in numbers.items() if key != name}
        return Reward(_within(numbers[name], settings), others)
    return None if text is None else Reward(_within(_number(text), settings), {})


def read_tests(document: bytes | None) -> list[dict[str, Any]]:
    """Return a criterion per test of a report in the Common Test Report Format; none where there is no usable one."""
    if document is None:
        return []
    try:
        found = strict_json.read_object(io.BytesIO(document), MAX_BYTES)
    except strict_json.NotUsable:
        return []
    results: Any = found.get("results")
    tests: Any = cast("dict[str, Any]", results).get("tests") if isinstance(results, dict) else None
    listed = cast("list[Any]", tests)[:MAX_TESTS] if isinstance(tests, list) else []
    return [
        _criterion(place, cast("dict[str, Any]", test)) for place, test in enumerate(listed) if isinstance(test, dict)
    ]


def _criterion(place: int, test: Mapping[str, Any]) -> dict[str, Any]:
    status, name, message = test.get("status"), test.get("name"), test.get("message")
    passed = None if status in _SKIPPED else status == _PASSED
    reason = clean_str(message[:REASON_CHARS])[0] if isinstance(message, str) and not passed else ""
    label = clean_str(name[:NAME_CHARS])[0] if isinstance(name, str) and name else f"test {place + 1}"
    return {"id": label, "passed": passed, "score": None, "max_score": None, "reason": reason}


def _numbers(document: bytes) -> dict[str, float]:
    try:
        found = strict_json.read_object(io.BytesIO(document), MAX_BYTES)
    except strict_json.NotUsable as error:
        raise Unusable(f"reward.json: {error}") from error
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in found.values()):
        raise Unusable("reward.json holds something that is no number")
    return {key[:NAME_CHARS]: float(value) for key, value in found.items()}


def _number(text: bytes) -> float:
    try:
        value = float(text.decode("ascii").strip())
    except ValueError:
        raise Unusable("reward.txt is no number") from None
    return value


def _within(value: float, settings: ScriptSettings) -> float:
    if not math.isfinite(value) or not 0 <= value <= settings.max_score:
        raise Unusable(f"the reward is not between 0 and {settings.max_score}")
    return value
