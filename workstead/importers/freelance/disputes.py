"""Gold answers that contradict the source's own words: a small, named set of checks that need no judgement.

Each gives (type, detail). An item that has one is ``disputed``: it runs, and every table can leave it out.
"""

import re
import statistics
from collections.abc import Iterator, Sequence

from workstead.importers.freelance.shapes import Answers, Case, Choice, Transformation

_ALPHABETICAL = re.compile(r"\balphabetic", re.IGNORECASE)
_BACKWARDS = re.compile(r"\b(reverse|descend|z to a|z-a)", re.IGNORECASE)
_NUMBERS_ONLY = re.compile(
    r"\b(?:numbers?|digits?|numeric)(?: characters?)? only\b|\bonly (?:the )?(?:numbers?|digits?|numeric)\b",
    re.IGNORECASE,
)
_GROWTH = re.compile(
    r"\b(?:growth|change|increase|decrease)\b[^.]{0,80}?\bfrom \$?(\d[\d,]{0,12}(?:\.\d{1,6})?) to \$?(\d[\d,]{0,12}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"([+-]?\d{1,9}(?:\.(\d{1,6}))?)\s*%")
_OTHER_CHOICE = re.compile(r"\b(?:correct )?(?:answer|choice|option) is \(?([A-D])\b")
_DEVIATION = re.compile(r"standard deviation|\bstd ?dev\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,12}(?:\.(\d{1,6}))?(?![\w.])")

Finding = tuple[str, str, str]
"""(type, where, detail)."""


def of_programs(tests: Sequence[Case]) -> Iterator[Finding]:
    """Yield a finding for each test whose input another one has with another output."""
    yield from _contradictions([(t.input, t.output) for t in tests], "/tests")


def of_answers(item: Answers) -> Iterator[Finding]:
    content = item.test_content
    for i, choice in enumerate(content.multiple_choice):
        yield from ((t, f"/test_content/multiple_choice/{i}", d) for t, d in _choice(choice))
    for i, text in enumerate(content.string_transformations):
        yield from ((t, f"/test_content/string_transformations/{i}", d) for t, d in _text(text))
    pairs = [(t.input_text, t.expected_output) for t in content.string_transformations]
    yield from _contradictions(pairs, "/test_content/string_transformations")


def _contradictions(pairs: Sequence[tuple[str, str]], where: str) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for i, (given, expected) in enumerate(pairs):
        if seen.setdefault(given, expected) != expected:
            yield "contradictory_tests", f"{where}/{i}", "an earlier test has the same input and another output"


def _choice(item: Choice) -> Iterator[tuple[str, str]]:
    named = {m[1] for m in _OTHER_CHOICE.finditer(item.explanation)}
    if named and item.correct_answer not in named:
        detail = f"the explanation names {', '.join(sorted(named))}, the gold answer is {item.correct_answer}"
        yield "explanation_names_other_choice", detail


def _text(item: Transformation) -> Iterator[tuple[str, str]]:
    rule, gold = item.explanation, item.expected_output
    if _ALPHABETICAL.search(rule) and not _BACKWARDS.search(rule) and not _is_sorted(_elements(gold)):
        yield "gold_not_sorted", "the rule says alphabetical, the gold answer is not"
    if _NUMBERS_ONLY.search(rule) and re.search(r"[A-Za-z]", gold):
        yield "gold_not_numbers_only", "the rule says numbers only, the gold answer has letters"
    yield from _growth(rule, gold)
    yield from _deviation(item)


def _elements(text: str) -> list[str]:
    """Return the keys or words of a list: lines, else what commas or semicolons part."""
    lines = [line for line in text.splitlines() if line.strip()]
    parts = lines if len(lines) > 2 else re.split(r"[,;]", text.strip().strip("[]{}"))
    return [re.split(r"[:=]", part.strip(), maxsplit=1)[0].strip(" \"'").casefold() for part in parts]


def _is_sorted(elements: Sequence[str]) -> bool:
    # Two elements are too few to say that a text is a list at all.
    return len(elements) < 3 or list(elements) == sorted(elements)


def _growth(rule: str, gold: str) -> Iterator[tuple[str, str]]:
    spans, stated = _GROWTH.findall(rule), _PERCENT.findall(gold)
    if len(spans) != 1 or len(stated) != 1:
        return
    before, after = (float(number.replace(",", "")) for number in spans[0])
    if not before:
        return
    growth = (after - before) / before * 100
    if abs(abs(growth) - abs(float(stated[0][0]))) > 0.51 * 10 ** -len(stated[0][1]):
        yield "gold_growth_differs", f"the rule gives {growth:.2f} %, the gold answer {stated[0][0]} %"


def _deviation(item: Transformation) -> Iterator[tuple[str, str]]:
    if not _DEVIATION.search(item.explanation) or re.search(
        r"\bpopulation\b|\bsample\b", item.input_text, re.IGNORECASE
    ):
        return
    values = [float(m[0]) for m in _NUMBER.finditer(item.input_text)]
    if not 2 <= len(values) <= 1_000:
        return
    for m in _NUMBER.finditer(item.expected_output):
        places, stated = len(m[1] or ""), float(m[0])
        population, sample = (round(f(values), places) for f in (statistics.pstdev, statistics.stdev))
        if stated == population != sample:
            yield "unstated_standard_deviation", f"{stated:g} is the population's, a sample's would be {sample:g}"
