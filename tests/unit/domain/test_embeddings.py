"""Embeddings of tasks' texts: what is sent, and what of an answer are vectors."""

import math
from typing import Any

import pytest

from service.domain.embeddings import MOST_CHARS, MOST_DIMENSIONS, EmbeddingsRequest, request_body, shown, vectors_of


def entry(index: int, *numbers: float) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": list(numbers)}


def test_the_beginning_is_sent_and_never_nothing() -> None:
    assert shown("  Do it.\n") == "Do it."
    assert len(shown("x" * (MOST_CHARS + 1))) == MOST_CHARS
    assert shown(" \n") == "-"


def test_a_model_that_cannot_be_asked_for_a_length_is_not() -> None:
    assert request_body("e-1", ["a", "b"], 8)["dimensions"] == 8
    assert request_body("e-1", ["a", "b"], 0) == {"model": "e-1", "input": ["a", "b"], "encoding_format": "float"}


def test_vectors_come_in_the_order_of_the_texts() -> None:
    answer = {"data": [entry(1, 3, 4), entry(0, 1, 2)]}
    assert vectors_of(answer, 2, 2) == [[1.0, 2.0], [3.0, 4.0]]
    assert vectors_of({"data": [{"embedding": [1]}, {"embedding": [2]}]}, 2, 0) == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "answer",
    [
        None, [], {}, {"data": {}}, {"data": [entry(0, 1)]}, {"data": [entry(0, 1), entry(1, 2), entry(2, 3)]},
        {"data": [entry(0, 1), entry(0, 2)]}, {"data": [entry(1, 1), entry(2, 2)]}, {"data": [entry(0, 1), "x"]},
        {"data": [entry(0, 1), {"index": "1", "embedding": [2]}]}, {"data": [entry(0, 1), entry(1, 2, 3)]},
        {"data": [entry(0), entry(1)]}, {"data": [entry(0, 1), {"index": 1, "embedding": "AAAA"}]},
        {"data": [entry(0, 1), entry(1, math.nan)]}, {"data": [entry(0, 1), entry(1, math.inf)]},
        {"data": [entry(0, 1), entry(1, True)]}, {"data": [entry(n, *[0.5] * (MOST_DIMENSIONS + 1)) for n in (0, 1)]},
    ],
)  # fmt: skip
def test_what_is_not_one_vector_of_numbers_for_each_text_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"vector|entry|asked for"):
        vectors_of(answer, 2, 0)


def test_the_length_that_was_asked_for_is_the_one_that_comes() -> None:
    answer = {"data": [entry(0, 1, 2), entry(1, 3, 4)]}
    assert vectors_of(answer, 2, 0) == vectors_of(answer, 2, 2)
    with pytest.raises(ValueError, match=r"\[2\] numbers, asked for 3"):
        vectors_of(answer, 2, 3)


@pytest.mark.parametrize("dimensions", [-1, MOST_DIMENSIONS + 1, 1.5])
def test_more_numbers_than_a_regression_can_use_are_not_asked_for(dimensions: Any) -> None:
    with pytest.raises(ValueError, match="dimensions"):
        EmbeddingsRequest.model_validate({"model": "m", "dimensions": dimensions})
