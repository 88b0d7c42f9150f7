"""Import direction (the contracts in pyproject.toml), cycles between modules, and who reads the settings."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

from tests.architecture.repository import ROOT, python_files, syntax

_MAY_READ_SETTINGS = ("service/wiring", "service/__main__", "service/settings", "tests/", "tools/")


def test_import_contracts_are_kept() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("service", "workstead", cache_dir=None)
    edges = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    cycle: object = None
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert cycle is None


def test_only_the_composition_root_reads_settings() -> None:
    readers = {
        str(path)
        for path in python_files()
        if not str(path).startswith(_MAY_READ_SETTINGS) and "service.settings" in set(_imported(path))
    }
    assert readers == set()


def test_imports_are_absolute_and_at_the_top() -> None:
    """Lazy imports hide edges; the command line may delay the heavy half of the project (`serve`, `doctor`, `demo`)."""
    lazy = {
        f"{path}:{node.lineno}"
        for path in python_files()
        if path.parts[0] == "service"
        for function in ast.walk(syntax(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and not _is_registry_or_launcher(path)
    }
    assert lazy == set()


def _is_registry_or_launcher(path: Path) -> bool:
    """Registries load what is named; launcher and `inside.py` are programs for sandboxes, with what is there."""
    return path.name in ("registry.py", "inside.py") or "launcher" in path.parts


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
