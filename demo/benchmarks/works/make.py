"""Write the sets whose works people or judges look at, and their solver: ``rli``, ``payworthy`` and ``scaffolds``."""

import json
import shutil
from pathlib import Path

from demo.benchmarks.works import opinions, payworthy, rli

HERE = Path(__file__).resolve().parent
SETS = HERE.parent
VARIANTS = ("right", "partial", "wrong", "hostile", "broken", "nothing", "crash")
ABSENT = ("__init__.py", "make.py", "opinions.py")
"""Not in the solver's kit."""
PACKAGE = "demo/benchmarks/works"


def make_rli(root: Path) -> None:
    """Copy briefs and metadata, and write inputs and what the professionals delivered beside them."""
    shutil.copytree(SETS / "rli", root)
    for project, given in rli.inputs().items():
        write(root / project / "project/inputs", given)
        write(root / project / "human_deliverable", rli.WORKS[project][1]())


def make_payworthy(root: Path) -> None:
    for job in payworthy.read_jobs(SETS / "payworthy/postings.toml"):
        folder = root / job.item_id
        files = {"posting.json": payworthy.posting(job), "metadata.json": payworthy.metadata(job)}
        write(folder, {name: json.dumps(value, indent=1).encode() + b"\n" for name, value in files.items()})
        write(folder / "deliverable", payworthy.solved(job))
        if job.tools:
            write(folder, {"facts.md": payworthy.facts(job).encode()})


def make_models(path: Path) -> None:
    """Write the scenarios of judges and forecasters, for ``workstead scripted-provider --scenarios``."""
    path.write_text(opinions.scenarios(payworthy.read_jobs(SETS / "payworthy/postings.toml")), encoding="utf-8")


def write(folder: Path, files: rli.Files) -> None:
    """Write files below ``folder``; where there are none it is not made."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def make_scaffolds(folder: Path) -> None:
    """Write one manifest per variant of the solver, with its files beside them."""
    kit = folder / "works"
    kit.mkdir(parents=True)
    for path in HERE.glob("*.py"):
        shutil.copyfile(path, kit / path.name)
    jobs = payworthy.read_jobs(SETS / "payworthy/postings.toml")
    (kit / payworthy.JOBS).write_text(payworthy.kit_jobs(jobs), encoding="utf-8")
    names = sorted(path.name for path in kit.iterdir() if path.name not in ABSENT)
    for variant in VARIANTS:
        manifest = {
            "name": f"works-{variant}",
            "version": "1",
            "argv": ["python3", "-m", "demo.benchmarks.works.solve", variant, "{instruction_file}", "{output_dir}"],
            "env": {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/workspace/.home/kit"},
            "files": [{"path": f"{PACKAGE}/{name}", "source": f"works/{name}"} for name in names],
        }
        (folder / f"works-{variant}.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
