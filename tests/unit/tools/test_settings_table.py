"""The table of settings in README.md."""

import sys

import pytest
from pydantic import BaseModel, Field

from tools import make_settings_table as tool


def test_readme_has_what_the_code_says() -> None:
    text = tool.README.read_text(encoding="utf-8")
    assert tool.renewed(text) == text


def test_names_are_those_of_the_environment() -> None:
    names = [name for name, _, _ in tool.rows()]
    assert {"WORKSTEAD_DATA_DIR", "WORKSTEAD_API__PORT", "WORKSTEAD_WORKER__SLOTS"} <= set(names)
    assert len(names) == len(set(names))


def test_nothing_of_this_machine_is_in_it() -> None:
    table = tool.table()
    assert "| `8040` | Port" in table
    assert "(4 MiB)" in table
    assert next(row[1] for row in tool.rows() if row[0].endswith("HOST_ID")) == "see there"


def test_docstrings_are_those_below_the_field() -> None:
    source = 'class A(B):\n    """Of the class."""\n    x: int = 1\n    """Of x,\n    two lines."""\n    y: int = 2\n'
    assert tool.docstrings(source) == {("A", "x"): "Of x, two lines."}


class Example(BaseModel):
    size: int = 3 << 20
    odd: int = (3 << 20) + 1
    on: bool = True
    names: list[str] = Field(default_factory=lambda: ["a"])


def test_defaults() -> None:
    said = {name: tool.default(field) for name, field in Example.model_fields.items()}
    assert said == {"size": "`3145728` (3 MiB)", "odd": "`3145729`", "on": "`true`", "names": '`["a"]`'}


def test_a_stale_table_fails_the_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["tool", "--check"])
    assert tool.main() == 0
    monkeypatch.setattr(tool, "table", str)
    assert tool.main() == 1
    assert "stale" in capsys.readouterr().err


def test_a_readme_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        tool.renewed("# Something else\n")
