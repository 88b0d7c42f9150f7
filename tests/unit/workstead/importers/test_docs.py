"""Every problem that an importer may state is explained."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
_SAID = re.compile(
    r"""\.(?:note|dispute|quarantine)\(\s*"(\w+)"|yield "(\w+)",|type="(\w+)"|return "(bad_\w+|\w+_link)","""
)


def test_every_type_is_in_the_documentation() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "workstead/importers").rglob("*.py"))
    types = {name for found in _SAID.findall(sources) for name in found if name}
    assert {"duplicate_id", "gold_not_sorted", "bad_task_name", "grader_later", "more_problems"} <= types
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs/importing.md").read_text()))
    assert types - documented - {"disputed"} == set()
