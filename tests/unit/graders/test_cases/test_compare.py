"""The comparators and what an answer's letter is."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.graders.test_cases.compare import choice_letter, equal
from service.graders.test_cases.settings import Comparator

LINES = st.lists(
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=20),
    min_size=1,
    max_size=5,
)
ORDER: tuple[Comparator, ...] = ("exact", "trim", "lenient")
BLANK = st.text(" \t", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("given", "expected", "exact", "trim", "lenient"),
    [
        ("a\n", "a\n", True, True, True),
        ("a", "a\n", False, True, True),
        ("a\r\nb\r\n", "a\nb", False, True, True),
        ("a  \nb\t\n", "a\nb\n", False, True, True),
        (" a", "a", False, False, False),
        ("a\n\n", "a", False, False, False),
        ("a\n\nb", "a\nb", False, False, False),
        ("A", "a", False, False, False),
        ("e\u0301", "é", False, False, True),
        ("1.0", "1", False, False, True),
        ("0.30000000000000004", "0.3", False, False, True),
        ("0.300001", "0.3", False, False, False),
        ("1e3", "1000", False, False, True),
        ("12345678901234567890", "12345678901234567891", False, False, False),
        ("1_000", "1000", False, False, False),
        ("\u0661", "1", False, False, False),
        ("nan", "nan", True, True, True),
        ("inf", "1e999", False, False, False),
        ('{"a": 1, "b": [2.0]}', '{"b":[2],"a":1}', False, False, True),
        ('{"a": true}', '{"a": 1}', False, False, False),
        ('{"a": "1"}', '{"a": 1}', False, False, False),
        ('{"a": 1, "a": 2}', '{"a": 2}', False, False, False),
        ("[NaN]", "[ NaN]", False, False, False),
        ('["e\u0301"]', '["é"]', False, False, True),
        ("[" * 100_000, "[" * 99_999, False, False, False),
        ("9" * 5000, "9" * 5000 + ".0", False, False, False),
        ("", "", True, True, True),
        ("\u00a0", "", False, False, False),
    ],
)
def test_by_comparator(given: str, expected: str, exact: bool, trim: bool, lenient: bool) -> None:
    assert (equal(given, expected, "exact"), equal(given, expected, "trim"), equal(given, expected, "lenient")) == (
        exact, trim, lenient,
    )  # fmt: skip


@given(LINES, st.lists(BLANK, min_size=5, max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_trim_ignores_ends_of_lines_and_nothing_else(
    lines: list[str], blanks: list[str], end: str, final: bool
) -> None:
    lines = [line.rstrip(" \t\r\v\f") for line in lines] + ["end"]
    text = end.join(line + blank for line, blank in zip(lines, [*blanks, ""], strict=False)) + (end if final else "")
    expected = "\n".join(lines[: len(blanks) + 1])
    assert equal(text, expected, "trim")
    assert not equal("x" + text, expected, "trim")
    assert not equal(text + "x", expected, "trim")
    assert not equal(text + "\n\n", expected, "trim")


@given(st.text(max_size=40), st.text(max_size=40))
def test_each_comparator_accepts_what_the_stricter_one_does(given: str, expected: str) -> None:
    exact, trim, lenient = (equal(given, expected, name) for name in ORDER)
    assert exact <= trim <= lenient
    assert all(equal(expected, expected, name) for name in ORDER)


@given(VALUES, st.integers(0, 4))
def test_lenient_reads_json_whatever_its_spacing_and_order(value: object, indent: int) -> None:
    other = json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=True)
    assert equal(other, json.dumps(value, ensure_ascii=False), "lenient")


@given(st.text(max_size=30))
def test_lenient_does_not_see_the_form_of_characters(text: str) -> None:
    assert equal(unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text), "lenient")


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e3))
def test_lenient_tells_numbers_apart(value: float, by: float) -> None:
    near, far = value * (1 + 1e-12), value + max(abs(value), 1) * by
    assert equal(repr(near), repr(value), "lenient")
    assert not equal(repr(far), repr(value), "lenient")


CHOICES = ["Paris", "Rome", "rome", "Paris"]


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A", "A"), ("b", "B"), (" d \n", "D"), ("E", None), ("Rome", "B"), ("rome", "C"), ("Paris", None), ("", None),
        ("A)", None), ("A B", None), ("0", None), ("\u0410", None), ("ß", None), (" Rome ", "B"),
    ],
)  # fmt: skip
def test_letter_of_an_answer(answer: str, letter: str | None) -> None:
    assert choice_letter(answer, CHOICES) == letter
