"""Write the small synthetic sets in the published formats: ``python -m demo.benchmarks.make TARGET``.

``TARGET/jobbench`` (folders with office files; more of them, and their solver, from ``demo/benchmarks/desk``),
``TARGET/freelance`` (both shapes, the reviewers' files, and sixty tasks from ``demo/benchmarks/gigs``) and ``TARGET/scaffolds`` (a solver for Freelance in six variants); ``TARGET/rli``, ``TARGET/payworthy`` and their solver come from
``demo/benchmarks/works``. Everything in them was written for this project.
"""

import json
import shutil
import sys
from pathlib import Path

from demo.benchmarks.desk import make as desk
from demo.benchmarks.gigs import make as gigs
from demo.benchmarks.works import make as works
from demo.make_files import TASKS, build_contract, build_inventory, build_invoices

HERE = Path(__file__).resolve().parent
VARIANTS = ("right", "wrong", "crash", "timeout", "flood", "hostile")


def make(target: Path) -> Path:
    """Make all sets below ``target``, which must not hold them yet."""
    shutil.copytree(HERE / "freelance", target / "freelance", ignore=shutil.ignore_patterns("__pycache__"))
    make_jobbench(target / "jobbench")
    make_scaffolds(target / "scaffolds")
    works.make_rli(target / "rli")
    works.make_payworthy(target / "payworthy")
    works.make_scaffolds(target / "scaffolds")
    works.make_models(target / "models.toml")
    desk.make_scaffolds(target / "scaffolds")
    gigs.make(target / "freelance")
    gigs.make_scaffolds(target / "scaffolds")
    with (target / "models.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + desk.scenarios(target / "jobbench"))
    return target


def make_jobbench(root: Path) -> None:
    """Copy the texts and write the office files beside them."""
    shutil.copytree(HERE / "jobbench", root)
    books = root / "dataset/bookkeepers/task1/task_folder"
    build_invoices(TASKS / "invoice-reconciliation/source", books)
    law = root / "dataset/paralegals/task1/task_folder"
    build_contract(TASKS / "contract-facts/source", law)
    # Names as clients give them: blanks, umlauts, a dash that is none.
    (law / "agreement.docx").rename(law / "Rahmenvertrag Müller & Söhne.docx")
    (law / "amendment.pdf").rename(law / "Änderung 1 \u2013 unterschrieben.pdf")
    build_inventory(TASKS / "inventory-audit/source", root / "dataset_easy/bookkeepers/task1/task_folder")
    desk.add_jobs(root)


def make_scaffolds(folder: Path) -> None:
    """Write one manifest per variant of the solver, with its files beside them."""
    kit = folder / "kit"
    shutil.copytree(HERE / "solver", kit, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / "freelance/solutions", kit / "programs", ignore=shutil.ignore_patterns("__pycache__"))
    names = sorted(p.relative_to(kit).as_posix() for p in kit.rglob("*.py"))
    for variant in VARIANTS:
        manifest = {
            "name": f"freelance-{variant}",
            "version": "1",
            "argv": ["python3", "/workspace/.home/kit/solve.py", variant, "{instruction_file}", "{output_dir}"],
            "env": {"PYTHONDONTWRITEBYTECODE": "1"},
            "files": [{"path": name, "source": f"kit/{name}"} for name in names],
        }
        text = json.dumps(manifest, indent=1)
        (folder / f"freelance-{variant}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]))}\n")
