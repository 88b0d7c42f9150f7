"""The synthetic sets of RLI and PayWorthy: in the exact formats, read without a loss, with works of every quality."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from demo.benchmarks.works import make, payworthy, rli
from service.domain.benchmarks import BenchmarkManifest
from service.domain.tasks import TaskManifest
from tests.unit.workstead.importers.sets import DEMO, checked, read

JOBS = payworthy.read_jobs(DEMO / "payworthy/postings.toml")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("works")
    make.make_rli(root / "rli")
    make.make_payworthy(root / "payworthy")
    make.make_scaffolds(root / "scaffolds")
    return root


def tasks(manifest: BenchmarkManifest) -> list[TaskManifest]:
    assert all(item.status == "ok" for item in manifest.items)
    return [item.task for item in manifest.items if item.task is not None]


def test_six_projects(made: Path) -> None:
    with read("rli", made / "rli") as imported:
        projects = {task.name: task for task in tasks(checked(imported))}
        seen = {path for task in projects.values() for path in [f.path for f in task.visible]}
    assert sorted(projects) == [f"rli/public_90{n}" for n in range(1, 7)]
    assert [t.name for t in projects.values() if not t.visible] == ["rli/public_903"]
    assert {Path(path).suffix for path in seen} >= {".wav", ".avi", ".xlsx", ".csv", ".png", ".md"}
    hidden = {f.path for f in projects["rli/public_902"].hidden}
    assert {"reference/index.html", "reference/src/game.js", "solution/output/src/game.js"} <= hidden
    assert [t.name for t in projects.values() if any(f.path == "evaluator_note.md" for f in t.hidden)] == [
        "rli/public_901",
        "rli/public_905",
    ]
    bases = {name[-3:]: t.price and (t.price.basis, t.price.usd) for name, t in projects.items()}
    assert bases == {
        "901": ("reported", "180"), "902": ("midpoint", "550"), "903": ("reported", "95"),
        "904": ("midpoint", "50"), "905": ("reported", "220"), "906": None,
    }  # fmt: skip


def test_forty_postings(made: Path) -> None:
    with read("payworthy", made / "payworthy") as imported:
        found = tasks(checked(imported))
        works = {work.key: {ref["path"] for ref in work.files} for work in imported.delivered}
        assert {p["type"] for item in imported.items for p in item["problems"]} == {"grader_later", "no_price"}
    assert len(found) == 40
    counted = {name: Counter(task.facets[name] for task in found) for name in ("pay_type", "needs", "category")}
    assert counted["pay_type"] == {"fixed": 20, "hourly": 20}
    assert set(counted["needs"]) == {"self_contained", "client_files", "client_systems", "medium"}
    assert len(counted["category"]) == 8
    assert sum(task.client is not None for task in found) == 10
    assert sum(task.price is None for task in found) == 4
    assert len(works) == 40
    assert {"work.xlsx", "note.md"} in works.values()


def test_no_posting_tells_what_its_client_keeps_or_what_would_be_paid(made: Path) -> None:
    with read("payworthy", made / "payworthy") as imported:
        told = {item["key"]: item["task"]["instruction"] for item in imported.items}
    for job in JOBS:
        assert job.work not in told[job.item_id]
        assert "What matters most to you" not in told[job.item_id]


@pytest.mark.parametrize("variant", ["right", "hostile", "nothing", "crash"])
def test_the_solver_as_a_sandbox_starts_it(made: Path, tmp_path: Path, variant: str) -> None:
    manifest = json.loads((made / f"scaffolds/works-{variant}.json").read_text())
    kit = tmp_path / "kit"
    for file in manifest["files"]:
        target = kit / file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((made / "scaffolds" / file["source"]).read_bytes())
    titles = [rli.WORKS["public_901"][0], JOBS[0].title]
    for n, title in enumerate(titles):
        (tmp_path / "instruction.md").write_text(f"# {title}\n\nDo it.\n")
        places: dict[str, str] = {
            "{instruction_file}": str(tmp_path / "instruction.md"),
            "{output_dir}": str(tmp_path / f"output{n}"),
        }
        argv: list[str] = [
            sys.executable if part == "python3" else places.get(part) or part for part in manifest["argv"]
        ]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(kit), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == (3 if variant == "crash" else 0), done.stderr
        output = tmp_path / f"output{n}"
        files = {p.relative_to(output).as_posix() for p in output.rglob("*") if p.is_file()}
        assert bool(files) == (variant not in ("nothing", "crash"))
        if variant == "right" and n == 0:
            assert {name: (output / name).read_bytes() for name in files} == rli.WORKS["public_901"][1]()


def test_only_right_works_say_what_a_client_pays_for() -> None:
    texts = {job.title: job.work for job in JOBS}
    for job in JOBS:
        kinds = {kind: payworthy.delivered(job.title, kind, texts) for kind in ("right", "partial", "wrong", "hostile")}
        good = {
            kind
            for kind, files in kinds.items()
            if all(any(part.encode() in data for data in files.values()) for part in job.must)
        }
        assert good == {"right"}, job.title
