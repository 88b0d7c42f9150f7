"""Which faults of the catalogue (tests/faults.toml) have a test: a query over ``@pytest.mark.fault(…)`` marks.

``python tools/faults.py [--need SET]`` lists number, title and tests; with ``--need``, the exit code is 1 if a number of
that named set has no test. Numbers that the catalogue does not know are always an error.
"""

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.testing.sandbox_suite import SUITE

TESTS = Path(__file__).parent.parent / "tests"


@dataclass(frozen=True, slots=True)
class Catalogue:
    titles: dict[int, str]
    sets: dict[str, set[int]]


def load(path: Path = TESTS / "faults.toml") -> Catalogue:
    table = tomllib.loads(path.read_text())
    titles = {int(number): str(title) for number, title in table["faults"].items()}
    return Catalogue(titles, {name: set(numbers) for name, numbers in table["sets"].items()})


def covered(root: Path = TESTS) -> dict[int, list[str]]:
    """Fault number to the tests that are marked with it, as ``path::name``."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        for name, number in _marks(ast.parse(path.read_text(), str(path))):
            found[number].append(f"{path.relative_to(root.parent)}::{name}")
    return dict(found)


def covered_by_suite() -> dict[int, list[str]]:
    """The same for the sandbox contract suite, whose table carries the numbers of each check."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for check in SUITE:
        for number in check.faults:
            found[number].append(f"tests/docker/test_contract.py [{check.name}]")
    return dict(found)


def main(argv: Sequence[str] | None = None) -> int:
    catalogue, tests = load(), covered()
    for number, checks in covered_by_suite().items():
        tests[number] = [*tests.get(number, []), *checks]
    parser = argparse.ArgumentParser(description="which faults of the catalogue have tests")
    parser.add_argument("--need", choices=sorted(catalogue.sets), help="exit 1 if one of this set has none")
    chosen = parser.parse_args(argv)
    wanted = catalogue.sets[chosen.need] if chosen.need else set(catalogue.titles)
    for number in sorted(wanted):
        where = tests.get(number, [])
        print(f"{number:4} {'ok' if where else '--':3} {catalogue.titles.get(number, '?')}")
        for test in where:
            print(f"           {test}")
    missing, unknown = sorted(wanted - tests.keys()), sorted(tests.keys() - catalogue.titles.keys())
    print(f"{len(wanted) - len(missing)} of {len(wanted)} have tests; without: {missing}")
    if unknown:
        print(f"not in the catalogue: {unknown}", file=sys.stderr)
    return 1 if unknown or (chosen.need and missing) else 0


def _marks(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((node.name, number) for number in _numbers(decorator))
        elif isinstance(node, ast.keyword) and node.arg == "marks":
            yield from (("parameter", number) for call in ast.walk(node.value) for number in _numbers(call))
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            yield from (("module", number) for call in ast.walk(node.value) for number in _numbers(call))


def _numbers(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fault":
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
                yield argument.value


if __name__ == "__main__":
    sys.exit(main())
