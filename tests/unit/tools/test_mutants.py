from pathlib import Path

import pytest

from tools.mutants import Mutant, rows, try_all

_SOURCE = "def double(x):\n    return x * 2\n"
_TEST = "from thing import double\n\n\ndef test_it():\n    assert double(2) == 4\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "thing.py").write_text(_SOURCE)
    (tmp_path / "test_thing.py").write_text(_TEST)
    return tmp_path


def _mutant(find: str, replace: str) -> Mutant:
    return Mutant("part", "name", "thing.py", find, replace, ("test_thing.py::test_it",))


def test_a_noticed_mutant_is_killed_and_the_file_restored(tree: Path) -> None:
    assert try_all([_mutant("x * 2", "x * 3")], tree) == []
    assert (tree / "thing.py").read_text() == _SOURCE


@pytest.mark.parametrize(
    ("find", "replace", "outcome"),
    [
        ("x * 2", "x + 2", "survived"),
        ("x * 9", "x", "occurs 0 times"),
        ("x", "y", "occurs 2 times"),
        ("x * 2", "x * (", "not Python"),
        ("x * 2", "x * 2", "changes nothing"),
    ],
)
def test_anything_else_is_a_failure(tree: Path, find: str, replace: str, outcome: str) -> None:
    (line,) = try_all([_mutant(find, replace)], tree)
    assert outcome in line


def test_tests_that_fail_anyway_prove_nothing(tree: Path) -> None:
    (tree / "test_thing.py").write_text(_TEST.replace("== 4", "== 5"))
    (line,) = try_all([_mutant("x * 2", "x * 3")], tree)
    assert "do not pass without it" in line


def test_rows_come_from_all_parts_or_the_named(tmp_path: Path) -> None:
    row = '[[mutant]]\nname = "n"\nfile = "f"\nfind = "a"\nreplace = "b"\ntest = ["t"]\n'
    (tmp_path / "one.toml").write_text(row)
    (tmp_path / "two.toml").write_text(row * 2)
    assert [mutant.part for mutant in rows(folder=tmp_path)] == ["one", "two", "two"]
    assert [mutant.part for mutant in rows(["one"], tmp_path)] == ["one"]
