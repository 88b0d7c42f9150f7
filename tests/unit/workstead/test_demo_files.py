"""The demo's files are the same each time, its tasks valid, and its solver knows no answers."""

import hashlib
import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any, cast

import docx
import openpyxl
import pypdf
import pytest

from demo.make_files import TASKS, make
from service.domain.agents import ScaffoldManifest
from service.domain.tasks import TaskManifest
from service.graders import registry as graders
from service.scaffolds import registry as scaffolds
from workstead.scaffold_file import read_scaffold_file
from workstead.task_dir import read_task_dir

DEMO = TASKS.parent
NOT_TELLING = ("Ireland", 30, 60, 90)
"""One of four jurisdictions that the instruction lists, and numbers that any program has."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {path.name: path for path in make(tmp_path_factory.mktemp("tasks"))}


def tree(root: Path) -> dict[str, str]:
    files = (p for p in sorted(root.rglob("*")) if p.is_file())
    return {p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_files_are_the_same_bytes_each_time(made: dict[str, Path], tmp_path: Path) -> None:
    again = {path.name: path for path in make(tmp_path)}
    assert {n: tree(p) for n, p in again.items()} == {n: tree(p) for n, p in made.items()}


def test_tasks_and_scaffolds_are_what_the_service_takes(made: dict[str, Path]) -> None:
    for folder in made.values():
        manifest = TaskManifest.model_validate(read_task_dir(folder).manifest)
        for spec in manifest.graders:
            graders.check(spec, manifest)
        assert [f.path for f in manifest.hidden if f.path.startswith("solution/output/")]
        assert not [f.path for f in manifest.visible if "answers" in f.path]
    for name in ("solver", "oracle", "nop"):
        scaffolds.check(ScaffoldManifest.model_validate(read_scaffold_file(DEMO / f"scaffolds/{name}.toml").manifest))


def test_every_kind_of_file_is_there(made: dict[str, Path]) -> None:
    kinds = {p.suffix for folder in made.values() for p in (folder / "visible").rglob("*") if p.is_file()}
    assert kinds == {".xlsx", ".pdf", ".csv", ".docx", ".sqlite", ".png"}


def test_files_open_as_what_they_claim(made: dict[str, Path]) -> None:
    invoices = made["invoice-reconciliation"] / "visible"
    stored = openpyxl.load_workbook(invoices / "orders.xlsx", data_only=True)
    formulas = openpyxl.load_workbook(invoices / "orders.xlsx")
    assert [stored["Orders"]["F2"].value, formulas["Orders"]["F2"].value] == [516, "=D2*E2"]
    assert "INVOICE CC-0088" in pypdf.PdfReader(invoices / "invoices/CC-0088.pdf").pages[0].extract_text()
    contract = made["contract-facts"] / "visible"
    assert len(pypdf.PdfReader(contract / "amendment.pdf").pages) == 2
    assert len(docx.Document(str(contract / "agreement.docx")).tables) == 1
    database = sqlite3.connect(made["inventory-audit"] / "visible/inventory.sqlite")
    assert database.execute("SELECT count(*) FROM movement").fetchone() == (18,)
    database.close()


def values(answer: Any) -> list[Any]:
    return cast("list[Any]", answer) if isinstance(answer, list) else [answer]


def test_the_solver_knows_no_answers() -> None:
    program = "\n".join(p.read_text() for p in (DEMO / "solver").glob("*.py"))
    for task in TASKS.iterdir():
        answers: dict[str, Any] = json.loads((task / "hidden/answers.json").read_text())
        for item in itertools.chain.from_iterable(map(values, answers.values())):
            known = isinstance(item, bool) or item in NOT_TELLING
            assert known or str(item) not in program, f"{task.name}: {item}"
