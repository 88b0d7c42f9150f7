"""ARCHITECTURE.md against the disk.

The block fenced as ``tree`` names one path a line, from the root or, indented by two spaces a level, from the line above;
the rest of the line is a description. What it names must exist, and it must name every top-level folder and every folder
of ``service/``.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.architecture.repository import ROOT, files

_MAX_LINES = 150


def _tree() -> list[str]:
    document = (ROOT / "ARCHITECTURE.md").read_text()
    assert "```tree\n" in document, "ARCHITECTURE.md has no block fenced as `tree`"
    return list(_paths(document.split("```tree\n", 1)[1].split("\n```", 1)[0]))


def _paths(block: str) -> Iterator[str]:
    parents: list[str] = []
    for line in block.splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip(" "))) // 2
        name = line.split()[0]
        parents = [*parents[:depth], name]
        yield "/".join(part.strip("/") for part in parents)


def test_every_path_in_the_tree_exists() -> None:
    assert [path for path in _tree() if not (ROOT / path).exists()] == []


def test_every_folder_that_matters_is_in_the_tree() -> None:
    top = {path.parts[0] for path in files() if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    packages = {f"service/{path.parts[1]}" for path in files() if path.parts[0] == "service" and len(path.parts) > 2}
    assert sorted((top | packages) - set(_tree())) == []


def test_the_document_stays_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= _MAX_LINES


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in files() if path.parent == Path("docs/decisions"))
    assert numbers == list(range(1, len(numbers) + 1))
