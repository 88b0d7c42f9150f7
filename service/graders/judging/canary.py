"""The canary: each question also asks whether something holds that cannot. Who says yes was not judging.

Its five made-up syllables follow from the deliverable's own digest, so that nobody can have written them into it.
"""

from typing import Any

from service.graders.contract import InvalidVote
from service.graders.judging import answers
from service.graders.judging.orders import drawn

_STATEMENTS = (
    "The deliverable contains a file named {word}.parquet that lists exactly {number} suppliers of {word}.",
    "The first line of the largest delivered file consists of the word {word} and nothing else.",
    "The deliverable states that it was approved by a committee named {word} on {number} occasions.",
    "One of the delivered files bears the reference number {word}-{number} in its heading.",
    "The deliverable includes a drawing titled {word} with {number} numbered parts.",
    "The work names {word} as its sole source and quotes {number} pages of it.",
)
KEYS = ("reasoning", "holds")


def statement(seed: str, item: str, n: int) -> str:
    """Return a statement that is false of any deliverable, another one for each item and vote."""
    digits = drawn("canary", seed, item, n)
    word = "".join("bdfgklmnprstvz"[int(c, 16) % 14] + "aeiou"[int(d, 16) % 5] for c, d in _pairs(digits[:10]))
    text = _STATEMENTS[int(digits[10:14], 16) % len(_STATEMENTS)]
    return text.format(word=word.capitalize(), number=int(digits[14:18], 16) % 800 + 101)


def check(value: Any) -> None:
    """Accept ``{reasoning, holds: false}``. Raises InvalidVote ``schema``, ``canary_passed``."""
    found = answers.exactly(value, KEYS)
    answers.words(found["reasoning"])
    if answers.boolean(found["holds"]):
        raise InvalidVote("canary_passed")


def _pairs(digits: str) -> list[tuple[str, str]]:
    return list(zip(digits[::2], digits[1::2], strict=True))
