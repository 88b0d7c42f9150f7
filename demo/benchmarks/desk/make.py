"""Write the office jobs into a set in JobBench's layout, their solver, and a judge who looks for what right work says."""

import csv
import json
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from demo.benchmarks.works.media import bars, png
from demo.office import write_docx, write_pdf, write_xlsx
from workstead.cli.demo_model import toml

HERE = Path(__file__).resolve().parent
PACKAGE = "demo/benchmarks"
KIT = ("desk/solve.py", "works/media.py")
JOBS = "desk/jobs.json"
VARIANTS = ("right", "partial", "wrong", "hostile", "broken", "nothing", "crash")
Job = Mapping[str, Any]
NO_VALUES: dict[tuple[str, str], float] = {}


def read_jobs() -> list[Job]:
    return tomllib.loads((HERE / "jobs.toml").read_text(encoding="utf-8"))["job"]


def add_jobs(root: Path) -> None:
    """Write each job's folder below a set in JobBench's layout."""
    for job in read_jobs():
        folder = root / job["place"]
        given = folder / "task_folder"
        given.mkdir(parents=True)
        (given / "TASK_INSTRUCTIONS.txt").write_text(job["instruction"].lstrip(), encoding="utf-8")
        for part in job["input"]:
            _write(given / part["name"], part)
        rubrics = [{key: rubric[key] for key in ("rubric", "weight", "criterion")} for rubric in job["rubric"]]
        (folder / "RUBRICS.json").write_text(json.dumps({"rubrics": rubrics}, indent=1) + "\n", encoding="utf-8")
        (folder / "task_card.md").write_text(job["card"], encoding="utf-8")


def _write(path: Path, part: Mapping[str, Any]) -> None:
    match path.suffix:
        case ".xlsx":
            write_xlsx(path, {part["sheet"]: part["rows"]}, NO_VALUES)
        case ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(part["rows"])
        case ".docx":
            write_docx(path, part["lines"][0], part["lines"][1:], ())
        case ".pdf":
            write_pdf(path, [part["lines"]])
        case ".sqlite":
            _write_table(path, part)
        case _:
            path.write_bytes(png(bars(64, 32, part["bars"])))


def _write_table(path: Path, part: Mapping[str, Any]) -> None:
    one, two = part["columns"]
    rows = [(value, flag) for value, flag, count in part["counts"] for _ in range(count)]
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"CREATE TABLE {part['table']} ({one} TEXT NOT NULL, {two} INTEGER NOT NULL)")
        connection.executemany(f"INSERT INTO {part['table']} VALUES (?, ?)", rows)  # noqa: S608  # of our own file
        connection.commit()
    finally:
        connection.close()


def make_scaffolds(folder: Path) -> None:
    """Write one manifest per variant of the solver, with its files beside them."""
    kit = folder / "desk-kit"
    for name in KIT:
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE.parent / name, kit / name)
    works = {job["instruction"].strip().splitlines()[0]: job["work"] for job in read_jobs()}
    (kit / JOBS).write_text(json.dumps(works), encoding="utf-8")
    names = (*KIT, JOBS)
    for variant in VARIANTS:
        manifest = {
            "name": f"desk-{variant}",
            "version": "1",
            "argv": ["python3", "-m", "demo.benchmarks.desk.solve", variant, "{output_dir}"],
            "env": {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/workspace/.home/kit"},
            "files": [{"path": f"{PACKAGE}/{name}", "source": f"desk-kit/{name}"} for name in names],
        }
        (folder / f"desk-{variant}.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def scenarios(root: Path) -> str:
    """Return the judge of a set in JobBench's layout as a scenario of the scripted provider."""
    opinions = [{"seen": seen, "say": json.dumps(said)} for seen, said in _opinions(root)]
    return f"[[scenario]]\nname = {toml('jobbench-judge')}\nopinions = {toml(opinions)}\n"


def _opinions(root: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """What is known of a rubric is looked for, wherever it stands; everything else does not pass."""
    proofs = {r["rubric"]: r["proof"] for job in read_jobs() for r in job["rubric"]}
    for path in sorted(root.glob("dataset*/*/*/RUBRICS.json")):
        body = json.loads(path.read_text(encoding="utf-8"))
        for rubric in body.get("rubrics", body.get("evaluation_rubrics", [])):
            text, criteria = rubric["rubric"], rubric["criterion"]
            count = 1 if isinstance(criteria, str) else len(criteria)
            if not text:
                continue
            if text in proofs:
                yield [text, proofs[text]], _vote(count, passed=True)
                yield [proofs[text], text], _vote(count, passed=True)
            yield [text], _vote(count, passed=False)


def _vote(count: int, *, passed: bool) -> dict[str, Any]:
    one = {"reasoning": "As shown.", "evidence": "the files", "passed": passed}
    return {
        "nonce": "{nonce}",
        "criteria_results": [{"index": n, **one} for n in range(1, count + 1)],
        "control": {"reasoning": "It is not so.", "holds": False},
        "overall_reasoning": "As shown.",
        "rubric_passed": passed,
    }
