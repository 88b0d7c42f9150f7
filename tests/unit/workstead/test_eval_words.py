"""What an evaluation is to be: words of the command line, and files."""

from pathlib import Path
from typing import Any

import pytest
import typer

from workstead.cli.eval.words import agent_choice, changes, facets_of, read_spec, setting


@pytest.mark.parametrize(
    ("word", "choice"),
    [
        ("solver", {"agent": "solver"}),
        ("agt_1", {"agent": "agt_1"}),
        ("codex:", {"scaffold": "codex"}),
        ("codex@1.2:gpt-5.5", {"scaffold": "codex@1.2", "model": "gpt-5.5"}),
        (
            "claude-code:anthropic/opus@max",
            {"scaffold": "claude-code", "model": "anthropic/opus", "settings": {"effort": "max"}},
        ),
        ("s:local:8b", {"scaffold": "s", "model": "local:8b"}),
    ],
)
def test_an_agent_in_one_word(word: str, choice: dict[str, Any]) -> None:
    assert agent_choice(word) == choice


@pytest.mark.parametrize("word", [":model", "s:model@", "s:@max"])
def test_words_that_are_no_agent(word: str) -> None:
    with pytest.raises(typer.BadParameter):
        agent_choice(word)


def test_the_same_facet_again_is_another_value() -> None:
    assert facets_of(["a=1", "b=x", "a=2"]) == {"a": ["1", "2"], "b": ["x"]}


class TestFiles:
    def read(self, tmp_path: Path, text: str, name: str = "e.yaml") -> dict[str, Any]:
        (tmp_path / name).write_text(text)
        return read_spec(tmp_path / name)

    def test_plain_words_are_what_they_look_like(self, tmp_path: Path) -> None:
        text = "# comment\nname: no\nlabels: {a: on, b: 12:30, c: 2026-01-02}\nsamples: 3\nx: true\ny: 1.5\nz: null\n"
        assert self.read(tmp_path, text) == {
            "name": "no",
            "labels": {"a": "on", "b": "12:30", "c": "2026-01-02"},
            "samples": 3,
            "x": True,
            "y": 1.5,
            "z": None,
        }

    def test_json_is_read_as_json(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, '{"name": "x"}', "e.json") == {"name": "x"}

    @pytest.mark.parametrize(
        "text",
        ["a: 1\na: 2\n", "[1, 2]\n", "a: [\n", "!!python/object/apply:os.system [true]\n", "[" * 3000, ""],
    )
    def test_what_is_no_evaluation_is_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(typer.BadParameter):
            self.read(tmp_path, text)

    def test_a_large_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workstead.cli.eval.words.MOST_BYTES", 10)
        with pytest.raises(typer.BadParameter, match="more than 10 bytes"):
            self.read(tmp_path, "name: long enough\n")


class TestChanges:
    def test_members_are_laid_over_what_there_is(self) -> None:
        now = {"concurrency": {"models": {"a": 1}, "total": 4}, "labels": {"x": "1"}, "budget": {"agents_usd": "5"}}
        words = [
            "concurrency.models.org/m-2.5=2", "concurrency.total=", "labels.team.sub=blue", "labels.x=",
            "budget.agents_usd=20", "stop_rules.enabled=false", "priority=7", "name=5",
        ]  # fmt: skip
        assert changes(words, now) == {
            "concurrency": {"models": {"a": 1, "org/m-2.5": 2}, "total": None},
            "labels": {"team.sub": "blue"},
            "budget": {"agents_usd": "20"},
            "stop_rules": {"enabled": False},
            "priority": 7,
            "name": "5",
        }
        assert now["concurrency"] == {"models": {"a": 1}, "total": 4}

    def test_a_limit_of_a_model_is_taken_away(self) -> None:
        now = {"concurrency": {"models": {"a": 1, "b": 2}}}
        assert changes(["concurrency.models.a="], now) == {"concurrency": {"models": {"b": 2}}}

    @pytest.mark.parametrize("word", ["priority", "seed=3", "budget=3", "name.x=1"])
    def test_what_cannot_be_set_is_refused(self, word: str) -> None:
        with pytest.raises(typer.BadParameter):
            changes([word], {})

    def test_dollars_stay_text(self) -> None:
        assert setting("agents_usd", "20.10") == "20.10"
        assert setting("agents_usd", "none") is None
        assert setting("total", "20") == 20
        assert setting("x", "words") == "words"
