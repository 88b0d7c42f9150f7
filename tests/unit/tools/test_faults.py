from pathlib import Path

from tools.faults import covered, load

_TESTS = """
import pytest

pytestmark = [pytest.mark.fault(1)]


@pytest.mark.fault(2, 3)
def test_a(): ...


@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.fault(4))])
async def test_b(x): ...


@pytest.mark.fault(5)
class TestC: ...
"""


def test_marks_are_found_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(_TESTS)
    found = covered(tmp_path / "tests")
    assert {number: [name.partition("::")[2] for name in names] for number, names in found.items()} == {
        1: ["module"], 2: ["test_a"], 3: ["test_a"], 4: ["parameter"], 5: ["TestC"],
    }  # fmt: skip


def test_every_set_and_every_mark_is_in_the_catalogue() -> None:
    catalogue = load()
    assert [name for name, numbers in catalogue.sets.items() if numbers - catalogue.titles.keys()] == []
    assert covered().keys() - catalogue.titles.keys() == set()
