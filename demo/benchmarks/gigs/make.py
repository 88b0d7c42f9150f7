"""Sixty tasks in the formats of the Freelance benchmark, half of each shape, programs that solve them, and a solver."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo.benchmarks.gigs import answers
from demo.benchmarks.gigs.programs import KINDS, Kind

HERE = Path(__file__).resolve().parent
FIRST_PROGRAM = 600
ANSWERS = 30
VARIANTS = ("right", "partial", "wrong", "hostile", "broken", "nothing", "crash")


def programs() -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each item of shape A with a program that solves it."""
    all_of_them = [(kind, k) for kind in KINDS for k in kind.numbers]
    for n, (kind, k) in enumerate(all_of_them):
        yield _item(FIRST_PROGRAM + n, kind, k), f"K = {k}\n{kind.program}"


def _item(number: int, kind: Kind, k: int) -> dict[str, Any]:
    tests = [{"input": text, "output": kind.reference(text, k)} for text in kind.inputs]
    told = {"title": kind.title.format(k=k), "description": kind.description.format(k=k)}
    return {"id": number, **told, "tags": ["Python", kind.tag], "price": kind.price + 10 * k, "tests": tests}


def make(folder: Path) -> None:
    """Write ``sixty.json`` and ``solutions/``, which may be there."""
    items = [item for item, _ in programs()] + [answers.item(n) for n in range(ANSWERS)]
    (folder / "sixty.json").write_text(json.dumps(items, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "solutions").mkdir(exist_ok=True)
    for item, program in programs():
        (folder / f"solutions/{item['id']}.py").write_text(program, encoding="utf-8")


def make_scaffolds(folder: Path) -> None:
    """Write one manifest per variant of the solver, with its files beside them."""
    kit = folder / "gigs"
    kit.mkdir(parents=True)
    shutil.copyfile(HERE / "solve.py", kit / "solve.py")
    (kit / "known.json").write_text(json.dumps(_known()), encoding="utf-8")
    for variant in VARIANTS:
        manifest = {
            "name": f"gigs-{variant}",
            "version": "1",
            "argv": ["python3", "/workspace/.home/kit/solve.py", variant, "{instruction_file}", "{output_dir}"],
            "env": {"PYTHONDONTWRITEBYTECODE": "1"},
            "files": [{"path": name, "source": f"gigs/{name}"} for name in ("solve.py", "known.json")],
        }
        (folder / f"gigs-{variant}.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _known() -> dict[str, Any]:
    """Return title → a program and half of its tests, or the answers: what a person of the trade would find out."""
    known: dict[str, Any] = {}
    for item, program in programs():
        half = {test["input"]: test["output"] for test in item["tests"][:2]}
        known[item["title"]] = {"program": program, "half": half}
    for n in range(ANSWERS):
        item = answers.item(n)
        content = item["test_content"]
        letters = {f"mc{i}": c["correct_answer"] for i, c in enumerate(content["multiple_choice"], 1)}
        texts = {f"st{i}": t["expected_output"] for i, t in enumerate(content["string_transformations"], 1)}
        known[item["metadata"]["job_title"]] = {"answers": {**letters, **texts}}
    return known
