"""Documents that tell people what to type name things that exist."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, files

_SHELL_BLOCK = re.compile(r"```(?:sh|shell|bash|console)\n(.*?)```", re.DOTALL)
_MAKE = re.compile(r"(?:^|`|&& |\$ )make ([a-z][a-z-]*)", re.MULTILINE)
_PATH = re.compile(r"`((?:service|workstead|tests|tools|docs|sandbox_images|migrations|api_schema)/[\w./-]*)`")
_DOCUMENTS = sorted(path for path in files() if path.suffix == ".md" and "data" not in path.parts)


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_readme_says_what_to_type() -> None:
    typed = "".join(_SHELL_BLOCK.findall((ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= set(_MAKE.findall(typed))


@pytest.mark.parametrize("document", _DOCUMENTS, ids=str)
def test_every_make_target_exists(document: Path) -> None:
    assert set(_MAKE.findall((ROOT / document).read_text())) <= _targets()


@pytest.mark.parametrize("document", [path for path in _DOCUMENTS if path.name != "CHANGELOG.md"], ids=str)
def test_every_path_exists(document: Path) -> None:
    # A decision is not edited afterwards, so it may name what has moved.
    if document.parts[:2] == ("docs", "decisions"):
        return
    assert [name for name in _PATH.findall((ROOT / document).read_text()) if not (ROOT / name).exists()] == []


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"^([a-z][a-z-]*):.*## \S", makefile, re.MULTILINE)) == _targets()


def test_commands_that_others_start_are_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"workstead": "workstead.cli:main"}
