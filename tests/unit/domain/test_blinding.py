"""Names that tell whose work something is."""

import pytest

from service.domain.blinding import HIDDEN, Names, distinct

NAMES = Names.of(["acme/gpt-5", "Zephyr 9", "solver@1 · acme/gpt-5", "r2", "agt_01HZX", "1.0"])


@pytest.mark.parametrize(
    "name",
    ["output/gpt-5.md", "output/GPT5_final.md", "output/final_gpt_5.md", "Acme-report.docx", "zephyr9.txt", "zephyr_9.txt",
     "byZephyr9now.pdf", "r2.csv", "my-r2-notes.csv", "solver/out.txt", "agt_01hzx.log"],
)  # fmt: skip
def test_every_spelling_is_taken_out(name: str) -> None:
    clean = NAMES.scrubbed(name)
    assert HIDDEN in clean
    assert NAMES.scrubbed(clean) == clean


@pytest.mark.parametrize("name", ["output/report.md", "r2d2.csv", "chart2.png", "v1.0/data.csv", "readme.md"])
def test_ordinary_names_stay(name: str) -> None:
    assert NAMES.scrubbed(name) == name


def test_texts_are_searched_for_names_that_tell_something() -> None:
    text = "Made by ACME's gpt-5; see r2. gpt 5 again, solver."
    assert NAMES.found_in(text) == ["acme", "gpt-5", "gpt 5", "solver"]
    assert Names.of([]).found_in(text) == []


def test_equal_names_are_told_apart() -> None:
    assert distinct(["a/x.md", "a/x.md", "b", "b", "a.d/e", "a.d/e"]) == [
        "a/x.md", "a/x (2).md", "b", "b (2)", "a.d/e", "a.d/e (2)",
    ]  # fmt: skip
