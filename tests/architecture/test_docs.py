"""Documents that tell people what to type name things that exist."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.architecture.repository import ROOT, files
from workstead.cli.app import app

_SHELL_BLOCK = re.compile(r"```(?:sh|shell|bash|console)\n(.*?)```", re.DOTALL)
_RUNNING = re.compile(r"```sh run\n(.*?)```", re.DOTALL)
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


def test_every_command_in_the_readme_exists() -> None:
    known = _commands(typer.main.get_command(app))
    groups = {words.split()[0] for words in known if " " in words}
    typed = re.findall(r"workstead ([a-z]+)(?: ([a-z]+))?", _typed((ROOT / "README.md").read_text()))
    named = {f"{first} {second}" if second and first in groups else first for first, second in typed}
    assert {"run", "runs list", "runs watch", "token create", "benchmarks import", "webhooks", "project"} <= named
    assert sorted(named - known) == []


def _table_of_commands(text: str) -> Iterator[str]:
    """Yield what a first cell such as ``workstead runs list``, ``watch`` means, written out."""
    for cell in re.findall(r"^\| (`workstead [^|]+) \|", text, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", cell)
        words = re.findall(r"(?<= )[a-z]+(?= |$)", first)
        yield from (" ".join(["workstead", *words[: max(len(words) - 1, 0)], other]) for other in others)


def _typed(text: str) -> str:
    return "\n".join(
        [
            *_table_of_commands(text),
            *_SHELL_BLOCK.findall(text),
            *re.findall(r"`(workstead [^`]+)`", text),
            *_RUNNING.findall(text),
        ]
    )


def _commands(command: object) -> set[str]:
    """Return what may follow ``workstead``: a command, a group, or a group and its command."""
    found: set[str] = set()
    inner_commands: dict[str, object] = getattr(command, "commands", {})
    for name, inner in inner_commands.items():
        found |= {name, *(f"{name} {words}" for words in _commands(inner))}
    return found
