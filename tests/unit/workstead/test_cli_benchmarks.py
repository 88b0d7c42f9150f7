"""``benchmarks`` and ``tasks`` without a service: what is printed, what is written, exit codes, what follows from runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.unit.workstead.fake_api import run_body
from workstead.cli.app import app
from workstead.cli.benchmark_card import show_card
from workstead.cli.checking import read, refused
from workstead.cli.checking_inputs import judge
from workstead.cli.checking_report import MAX_REASONS, Finding, exit_code
from workstead.cli.common import out
from workstead.errors import Invalid
from workstead.importers.registry import IMPORTERS
from workstead.models import BenchmarkItem, Integrity, Run
from workstead.models_benchmarks import BenchmarkCard

DEMO = Path(__file__).parents[3] / "demo"
SHAPE_B = DEMO / "benchmarks/freelance/shape_b.json"
runner = CliRunner()


def workstead(*arguments: str | Path) -> Result:
    return runner.invoke(app, [str(argument) for argument in arguments])


def test_a_dry_run_prints_the_table_and_writes_the_report(tmp_path: Path) -> None:
    done = workstead("benchmarks", "import", "freelance", SHAPE_B, "--dry-run", "--report", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    for said in ("203", "gold_not_sorted", "204", "no_tests", "bad_price", "nothing was sent"):
        assert said in done.stdout
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["counts"] == {"ok": 3, "disputed": 2, "quarantined": 1}
    assert [item["key"] for item in report["items"]] == ["201", "202", "203", "204", "205", "206"]


def test_nothing_usable_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"id": 1, "title": "t", "description": "d", "tests": []}]')
    done = workstead("benchmarks", "import", "freelance", tmp_path / "x.json", "--dry-run")
    assert done.exit_code == 1
    assert "none of the 1 items is usable" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody", SHAPE_B), f"there are: {', '.join(sorted(IMPORTERS))}"),
        (("freelance", DEMO), "is not a file"),
        (("jobbench", DEMO), "no task was found"),
        (("freelance", SHAPE_B, "-O", "speed=1"), "known options"),
        (("freelance", SHAPE_B, "--name", "a b"), "--name"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str | Path, ...], said: str) -> None:
    done = workstead("benchmarks", "import", *arguments, "--dry-run")
    assert done.exit_code == 1
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_texts_of_the_source_cannot_steer_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "dataset/[red]x\x1b[2J/task1"
    folder.mkdir(parents=True)
    shutil.copytree(DEMO / "benchmarks/jobbench/dataset/bookkeepers/task1", tmp_path / "dataset/a/task1")
    (tmp_path / "dataset/note\x1b]0;x\x07.txt").write_text("")
    done = workstead("benchmarks", "import", "jobbench", tmp_path, "--dry-run")
    assert done.exit_code == 0
    assert "[red]x" in done.stdout
    assert "\x1b" not in done.output


def test_options_of_an_importer_are_listed() -> None:
    assert "rule_only" in workstead("benchmarks", "options", "freelance").stdout
    assert workstead("benchmarks", "options", "nobody").exit_code == 1


def test_tasks_are_checked_without_a_service(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
        (folder / "task.toml").write_text('name = "t"\n')
        (folder / "instruction.md").write_text("Read /workspace/gone.csv and answer.\n")
    (bad / "task.toml").write_text('name = "t t"\n[limits]\ncpus = 0\n')
    one = workstead("tasks", "check", good)
    assert (one.exit_code, "suspect" in one.stdout, "gone.csv" in one.stdout) == (0, True, True)
    both = workstead("tasks", "check", tmp_path, "--json")
    assert both.exit_code == 1
    said = {Path(c["directory"]).name: c for c in map(json.loads, both.stdout.splitlines())}
    assert said["good"]["ok"] is True
    assert [p.split(":")[0] for p in said["bad"]["problems"]] == ["/name", "/limits/cpus"]


def run(score: float | None, outcome: str = "graded", ended: str = "completed") -> Run:
    verdict = {"state": outcome, "score": score, "max_score": 4}
    return Run.model_validate(run_body("run_1", phase="done", outcome=outcome, ended_because=ended, verdict=verdict))


@pytest.mark.parametrize(
    ("oracle", "nop", "state", "said"),
    [
        (run(4), run(0), "ok", ""),
        (None, run(0), "ok", ""),
        (run(3), run(0), "broken", "the reference solution gets 3 of 4"),
        (run(4), run(4), "broken", "an agent that does nothing gets 4 of 4"),
        (run(None, "ungraded", "sandbox_lost"), run(0), "suspect", "ungraded, sandbox_lost"),
        (run(4), run(None, "cancelled", "cancelled"), "suspect", "has no score"),
    ],
)
def test_what_follows_from_runs(oracle: Run | None, nop: Run, state: str, said: str) -> None:
    found = Finding()
    if oracle is not None:
        found.oracle_ended(oracle)
    found.nop_ended(nop)
    check = found.as_check()
    assert check["state"] == state
    assert said in "".join(check["reasons"])
    assert check["oracle"] == ("not_applicable" if oracle is None else found.oracle)
    assert exit_code({"k": check}) == (1 if state == "broken" else 0)


def report(path: str, opens: bool | None, *types: str, state: str = "ready") -> Integrity:
    file = {"path": path, "opens": opens, "problems": [{"type": t} for t in types]}
    return Integrity.model_validate({"run_id": "run_1", "state": state, "files": [file]})


@pytest.mark.parametrize(
    ("given", "suspicions", "remarks"),
    [
        (report("output/inputs/a.pdf", False, "truncated"), ["a.pdf: truncated"], 0),
        (report("output/inputs/a.pdf", False), ["a.pdf: does not open"], 0),
        (report("output/inputs/a.bin", None), [], 0),
        (report("output/other.pdf", False), [], 0),
        (report("output/inputs/a.pdf", False, state="unavailable"), [], 1),
    ],
)
def test_what_follows_from_files(given: Integrity, suspicions: list[str], remarks: int) -> None:
    found = Finding()
    judge(run(0), given, found)
    assert (found.suspicions, len(found.remarks)) == (suspicions, remarks)


def test_what_follows_from_the_manifest() -> None:
    problem = {"type": "named_file_missing", "where": "", "detail": "x.pdf is listed and not there"}
    item = BenchmarkItem.model_validate({"key": "k", "problems": [problem, {"type": "grader_later"}]})
    manifest: dict[str, Any] = {
        "instruction": "See /workspace/y.csv",
        "visible": [],
        "collect": ["output"],
        "graders": [],
    }
    checked = read(item, "task_1", manifest)
    assert checked.found.suspicions == [
        "x.pdf is listed and not there",
        "the instruction names /workspace/y.csv, which is not there",
    ]
    assert checked.found.state() == "suspect"
    assert (checked.has_grader, checked.has_files, len(checked.found.remarks)) == (False, False, 1)


def test_a_refused_run_says_why() -> None:
    no_solution, no_image = Finding(), Finding()
    refused(Invalid(422, "no_reference_solution", "none"), no_solution)
    refused(Invalid(422, "image_missing", "there is no image x"), no_image)
    assert (no_solution.state(), no_image.state()) == ("ok", "suspect")
    assert "there is no image x" in no_image.suspicions[0]


def test_reasons_are_bounded() -> None:
    found = Finding(suspicions=["x" * 5_000] * 80)
    reasons = found.as_check()["reasons"]
    assert len(reasons) == MAX_REASONS
    assert max(map(len, reasons)) <= 1_000


def test_a_check_does_not_wait_for_people() -> None:
    item = BenchmarkItem.model_validate({"key": "a"})
    for methods, runnable in ((["exact"], True), (["human_panel"], False), (["pairwise", "human_panel"], False)):
        checked = read(item, "task_1", {"instruction": "x", "graders": [{"method": m} for m in methods]})
        assert checked.has_grader is runnable
        assert ("people grade it" in str(checked.found.remarks)) is not runnable


def test_a_card_on_one_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "width", 240)
    places = ("total", "mean", "min", "p10", "p25", "p50", "p75", "p90", "max")
    show_card(
        BenchmarkCard(
            id="bench_1",
            name="set",
            version="1",
            notice="Cite\x1b[31m us.",
            counts={"items": 3, "ok": 2, "disputed": 0, "quarantined": 1},
            facets={"category": {"tasks": 2, "distinct": 20, "values": {f"c{n}": 1 for n in range(20)}}},
            formats=[{"suffix": None, "tasks": 1, "files": 2, "size_bytes": 3}],
            price_usd={"n": 2, "missing": 0, **dict.fromkeys(places, 1234.5)},
            price_and_hours={"n": 3, "r": 0.5},
        )
    )
    shown = capsys.readouterr().out
    for said in ("2 ok, 0 disputed, 1 quarantined", "1,234.50", "r = 0.500 over 3 items", "8 more", "none", "Cite"):
        assert said in shown
    assert "\x1b" not in shown
