"""The report beside what the tables make."""

import csv
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from service.lifecycle.handover.verify_program.formulas import FORMULAS, NEAR
from service.lifecycle.handover.verify_program.means import SKIPPED
from service.lifecycle.handover.verify_program.panel import validity
from service.lifecycle.handover.verify_program.reading import Data, Row, Tables, digests, read_table

LIMITS = {"wall_clock", "budget", "memory_limit", "output_limit", "disk_limit"}
OURS = {"sandbox_lost", "provider_unavailable", "provision_failed", "infra_error", "cancelled", "refused"}


def policy_of(run: Row, policies: Row) -> tuple[Any, Any]:
    """What a run counts as, or why it does not."""
    cause: Any = run["ended_because"]
    flags: list[str] = run["flags"] or []
    aside = [
        ("control" in flags, "control"), ("preflight" in flags, "preflight"), (run["outcome"] == "invalidated", "invalidated"),
        (run["phase"] != "done", "not_done"), (run["outcome"] == "cancelled", "cancelled"), ("assisted" in flags, "assisted"),
        (cause == "stopped", "stopped"), (cause in OURS, "infrastructure"),
    ]  # fmt: skip
    for holds, why in aside:
        if holds:
            return None, why
    for holds, why in (("no_deliverable" in flags, "no_deliverable"), (cause in LIMITS, "partial_after_limit")):
        if holds and policies[why] not in ("as_graded", "grade"):
            return (0.0, None) if policies[why] == "zero" else (None, why)
    if run["outcome"] != "graded" or None in (run["score"], run["max_score"]):
        return None, "abstained" if run["outcome"] == "abstained" else "ungraded"
    return (run["score"] / run["max_score"], None) if run["max_score"] > 0 else (None, "no_points")


def counting(x: Data, tables: Tables) -> Iterator[str]:
    """Yield runs that the policies make something else of than table runs says."""
    for run in tables["runs"] if len(x.header["evaluations"]) == 1 else []:
        value, why = policy_of(run, x.policies)
        if not same(run["counted"], value):
            yield f"tables/runs.csv {run['run_id']}.counted: {run['counted']}, by the policies {value}"
        if run["exclusion"] != why:
            yield f"tables/runs.csv {run['run_id']}.exclusion: {run['exclusion']}, by the policies {why}"


def same(said: Any, computed: Any, near: float = 1e-9) -> bool:
    if computed is SKIPPED or said is computed:
        return True
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (said, computed))
    return math.isclose(said, computed, rel_tol=near, abs_tol=1e-12) if numbers else said == computed


def compare(table: Row, found: Row, key: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (cell, said, computed) of everything that the table says."""
    name = table["name"]
    yield f"{name}.n", table["n"], found["n"]
    for why in sorted(set(table["excluded"]) | set(found["excluded"])):
        yield f"{name}.excluded[{why}]", table["excluded"].get(why, 0), found["excluded"].get(why, 0)
    for setting, value in found.get("settings", {}).items():
        yield f"{name}.settings[{setting}]", table["settings"].get(setting), value
    if "notes" in found:
        yield f"{name}.notes", table["notes"], found["notes"]
    said, computed = ({tuple(row.get(k) for k in key): row for row in rows} for rows in (table["rows"], found["rows"]))
    yield f"{name}: number of rows", len(table["rows"]), len(found["rows"])
    for place in sorted(set(said) | set(computed), key=str):
        where = f"{name}[{', '.join(map(str, place))}]"
        if place not in said or place not in computed:
            yield where, "there" if place in said else "not there", "there" if place in computed else "not there"
            continue
        for column in {**{c["name"]: None for c in table["columns"]}, **said[place]}:
            yield f"{where}.{column}", said[place].get(column), computed[place].get(column, "no such figure")


def panel(x: Data, report: Row) -> Iterator[tuple[str, Any, Any]]:
    """Yield the lines on validity, and the header's counts."""
    for name in ("agents", "tasks", "runs"):
        yield f"header.{name}", x.header[name], len(x.tables[name])
    said, computed = {line["name"]: line for line in report["validity"]}, validity(x)
    for name in sorted(set(said) | set(computed)):
        if name not in said or name not in computed:
            yield f"validity[{name}]", name in said, name in computed
            continue
        for cell, value in computed[name].items():
            yield f"validity[{name}].{cell}", said[name][cell], value


def figures(x: Data, report: Row) -> Iterator[tuple[str, Any, Any, float]]:
    """Yield (cell, said, computed, how near) of all that the report says."""
    for cell in panel(x, report):
        yield (*cell, 1e-9)
    for table in report["tables"]:
        known = formula_of(table["name"])
        if known is None:
            yield table["name"], "a table", "nothing: this program has no formula for it", 0.0
            continue
        formula, key = known
        for cell in compare(table, formula(x, table), key):
            yield (*cell, NEAR.get(table["name"], 1e-9))


def formula_of(name: str) -> Any:
    """Return how a table is computed; tables that come several times are numbered."""
    return FORMULAS.get(name) or FORMULAS.get(re.sub(r"_\d+$", "", name))


UNREADABLE = (
    ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError, csv.Error,
)  # fmt: skip
"""What files that are not what they should be make of any formula."""


def verify(folder: Path) -> int:
    """Print what was found; return the exit status. Whatever is wrong with the files is a difference."""
    wrong = [*found_by("files", files_differ(folder)), *found_by("figures", figures_differ(folder))]
    for line in wrong:
        print(f"DIFFERS {line}")
    print("all that was checked agrees" if not wrong else f"{len(wrong)} differences")
    return 1 if wrong else 0


def found_by(what: str, differences: Iterator[str]) -> Iterator[str]:
    """Yield the differences; where files are such that nothing can be made of them, that is one."""
    try:
        yield from differences
    except UNREADABLE as error:
        yield f"{what} cannot be read: {type(error).__name__}: {error}"


def read_json(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def files_differ(folder: Path) -> Iterator[str]:
    manifest = read_json(folder, "manifest.json")
    print(f"digests: {len(manifest['files'])} files")
    print(f"left out: {', '.join(f'{n} {why}' for why, n in manifest['exclusions'].items()) or 'no run'}")
    yield from digests(folder, manifest)


def figures_differ(folder: Path) -> Iterator[str]:
    report = read_json(folder, "report/report.json")
    there = (t for t in read_json(folder, "dictionary.json") if (folder / "tables" / f"{t['name']}.csv").exists())
    tables = {t["name"]: read_table(folder, t) for t in there}
    x = Data(tables, report)
    yield from counting(x, tables)
    cells = skipped = 0
    for cell, said, computed, near in figures(x, report):
        cells, skipped = cells + 1, skipped + (computed is SKIPPED)
        if not same(said, computed, near):
            yield f"{cell}: the report says {said}, the tables make {computed}"
    print(
        f"figures: {cells - skipped} cells recomputed"
        + (f", {skipped} ends of intervals skipped: no numpy" if skipped else "")
    )


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    if not (where / "manifest.json").is_file():
        print(f"{where} is no export: it has no manifest.json")
        sys.exit(2)
    sys.exit(verify(where))
