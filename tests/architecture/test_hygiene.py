"""Nothing of the machine or the network that this was written on, and a reason at each broad ``except``."""

import ast
import re

import pytest

from tests.architecture.repository import files, python_files, syntax, text
from tools import faults

# Put together from parts, so that this file does not hold what it looks for.
_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("index", "docker", "io"),
        ("registry-1", "docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("gcr", "io"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
    )
]
_PLACES = ["/" + "work" + tail for tail in ("/main", "/shared", "/.library")]
_BROAD = {"Exception", "BaseException"}
_MAY_BE_BROAD = re.compile(r"except\s*:|Exception\b")
_MIN_REASON = 12


@pytest.mark.parametrize("needle", [*_HOSTS, *_PLACES])
def test_no_file_names_a_registry_host_or_a_place_on_this_machine(needle: str) -> None:
    pattern = re.compile(rf"(?<![\w-]){re.escape(needle)}(?![\w-])" if needle in _HOSTS else re.escape(needle))
    assert [str(path) for path in files() if needle in (text(path) or "") and pattern.search(text(path) or "")] == []


def test_each_broad_except_says_why() -> None:
    silent: list[str] = []
    for path in python_files():
        source = text(path) or ""
        if not _MAY_BE_BROAD.search(source):
            continue
        lines = source.splitlines()
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node):
                near = lines[max(0, node.lineno - 2) : node.lineno]
                if not any(len(_reason(line)) >= _MIN_REASON for line in near):
                    silent.append(f"{path}:{node.lineno}")
    assert silent == []


def test_no_cancellation_is_lost() -> None:
    """Python 3.11's wait_for forgets that it was cancelled when what it waits for ends just then: ``timeout`` does not.

    What runs in sandboxes also meets older Pythons, which have no ``timeout``.
    """
    ours = [p for p in python_files() if p.parts[0] in ("service", "workstead") and p.name != "inside.py"]
    assert [str(p) for p in ours if "asyncio.wait_for(" in (text(p) or "")] == []


def test_no_check_is_switched_off_without_naming_it() -> None:
    bare = re.compile(r"#\s*(noqa(?!:)|type:\s*ignore|pyright:\s*ignore(?!\[))")
    found = [
        f"{path}:{number}"
        for path in python_files()
        for number, line in enumerate((text(path) or "").splitlines(), 1)
        if bare.search(line) and path.name != "test_hygiene.py"
    ]
    assert found == []


def _is_broad(node: ast.ExceptHandler) -> bool:
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _BROAD) for kind in types)


def _raises_again(node: ast.ExceptHandler) -> bool:
    """Clean up, then let it go on: nothing is swallowed."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _reason(line: str) -> str:
    comment = line.partition("#")[2]
    return re.sub(r"(noqa:\s*[A-Z0-9, ]+|pyright:\s*ignore\[[^\]]*\])", "", comment).strip(" -:#\u2013\u2014")


def test_every_fault_that_the_spine_must_stand_has_a_test() -> None:
    assert faults.main(["--need", "spine"]) == 0
