"""A plug-in is one folder, one line in its registry and one folder of unit tests; nothing else has to know of it."""

import re
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, files, text

FAMILIES = ("service/scaffolds", "service/graders", "workstead/importers")
_SHARED = {"conformance", "judging", "media", "prompt_texts", "testing", "tool_loop"}


def _plugins(family: str) -> list[str]:
    folders = {path.parts[2] for path in files() if path.is_relative_to(family) and len(path.parts) > 3}
    return sorted(folders - _SHARED)


_ALL = [(family, name) for family in FAMILIES for name in _plugins(family)]


@pytest.mark.parametrize(("family", "name"), _ALL)
def test_has_a_line_in_the_registry(family: str, name: str) -> None:
    registry, dotted = text(Path(family, "registry.py")) or "", family.replace("/", ".")
    assert re.search(rf"\b{re.escape(dotted)}\.{name}\b", registry), f"{family}/registry.py does not name {name}"


@pytest.mark.parametrize(("family", "name"), _ALL)
def test_has_a_folder_of_unit_tests(family: str, name: str) -> None:
    folder = ROOT / "tests" / "unit" / family.removeprefix("service/") / name
    assert list(folder.glob("test_*.py")), f"no tests in {folder.relative_to(ROOT)}/"


@pytest.mark.parametrize("family", [family for family in FAMILIES if _plugins(family)])
def test_family_has_contract_and_registry(family: str) -> None:
    assert {"contract.py", "registry.py"} <= {path.name for path in (ROOT / family).iterdir()}
