"""Shows that tests notice: breaks one thing at a time in a copy of the tree and expects the named tests to fail.

Rows live in ``tests/mutants.d/<part>.toml``::

    [[mutant]]
    name = "fence is not checked"
    file = "service/store/attempts.py"
    find = "text that occurs exactly once in the file"
    replace = "what stands there instead"
    test = ["tests/integration/test_fences.py::test_stale_worker_is_refused"]

``python tools/mutants.py [PART …]``. The exit code is 1 if a mutant survives, if ``find`` does not occur exactly once,
or if the tests do not pass without the mutation.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "tests" / "mutants.d"
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", "*.egg-info"
)
_DEADLINE_S = 600
_PYTEST_FAILED = 1


@dataclass(frozen=True, slots=True)
class Mutant:
    part: str
    name: str
    file: str
    find: str
    replace: str
    test: tuple[str, ...]

    def problem(self, tree: Path) -> str | None:
        """Why this row cannot be tried, or None."""
        target = tree / self.file
        if not target.is_file():
            return f"{self.file} does not exist"
        count = target.read_text().count(self.find)
        if count != 1:
            return f"`find` occurs {count} times in {self.file}"
        if self.find == self.replace:
            return "`replace` changes nothing"
        return self._syntax(target)

    def _syntax(self, target: Path) -> str | None:
        """A mutant that does not parse would fail every test and prove nothing."""
        if target.suffix == ".py":
            try:
                ast.parse(self._changed(target))
            except SyntaxError as error:
                return f"the mutated file is not Python: {error}"
        return None

    def _changed(self, target: Path) -> str:
        return target.read_text().replace(self.find, self.replace)

    def apply(self, tree: Path) -> str:
        """Write the mutation; return the text to restore."""
        target = tree / self.file
        before = target.read_text()
        target.write_text(self._changed(target))
        return before


def rows(parts: Iterable[str] = (), folder: Path = ROWS) -> list[Mutant]:
    """All rows, or those of the named parts. Raises KeyError, TypeError for a malformed row."""
    wanted = set(parts)
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        if wanted and path.stem not in wanted:
            continue
        found.extend(_row(path.stem, row) for row in tomllib.loads(path.read_text()).get("mutant", []))
    return found


def try_all(mutants: Sequence[Mutant], tree: Path) -> list[str]:
    """Try each in ``tree``, a copy that may be changed. Returns one line per row that did not turn out killed."""
    bad: list[str] = []
    healthy: dict[tuple[str, ...], bool] = {}
    for mutant in mutants:
        started = time.monotonic()
        outcome = _try(mutant, tree, healthy)
        print(f"{outcome:9} {time.monotonic() - started:5.1f} s  {mutant.part}: {mutant.name}", flush=True)
        if outcome != "killed":
            bad.append(f"{mutant.part}: {mutant.name}: {outcome}")
    return bad


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="show that each check fails when what it checks is broken")
    parser.add_argument("parts", nargs="*", metavar="PART", help="names of files in tests/mutants.d; default all")
    mutants = rows(parser.parse_args(argv).parts)
    if not mutants:
        print("no such mutants", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="workstead-mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=_NOT_COPIED, symlinks=True)
        (tree / ".venv").symlink_to(ROOT / ".venv")
        bad = try_all(mutants, tree)
    print(f"{len(mutants) - len(bad)} of {len(mutants)} killed")
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


def _try(mutant: Mutant, tree: Path, healthy: dict[tuple[str, ...], bool]) -> str:
    problem = mutant.problem(tree)
    if problem:
        return f"unusable ({problem})"
    if mutant.test not in healthy:
        healthy[mutant.test] = _pytest(mutant.test, tree) == 0
    if not healthy[mutant.test]:
        return "unusable (its tests do not pass without it, or were skipped)"
    before = mutant.apply(tree)
    try:
        code = _pytest(mutant.test, tree)
    finally:
        (tree / mutant.file).write_text(before)
    return {_PYTEST_FAILED: "killed", 0: "survived"}.get(code, f"unusable (pytest ended with {code})")


def _pytest(tests: Sequence[str], tree: Path) -> int:
    """The exit code of pytest in the copy, whose packages come before the installed ones."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    # CI=true: a skipped test would look like a passed one.
    environment = {**os.environ, "PYTHONPATH": str(tree), "CI": "true"}
    try:
        return subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DEADLINE_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return _PYTEST_FAILED


def _row(part: str, row: dict[str, Any]) -> Mutant:
    tests = row.pop("test")
    return Mutant(part=part, test=(tests,) if isinstance(tests, str) else tuple(tests), **row)


if __name__ == "__main__":
    sys.exit(main())
