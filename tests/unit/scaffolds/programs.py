"""Recorded output of the real programs (``make record-fixtures``), and contexts with a model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from service.domain.agents import AgentSettings, ScaffoldManifest
from service.domain.models import Dialect
from service.domain.run_states import ExitReport
from service.scaffolds.contract import AgentReport, ModelChoice, Plan, PlanContext, Translated
from service.scaffolds.registry import scaffold_for
from tests.unit.scaffolds.build import AGENT, CONTEXT, task

RECORDED = Path(__file__).parents[2] / "fixtures" / "scaffolds"


def program(kind: str, **fields: Any) -> ScaffoldManifest:
    return ScaffoldManifest.model_validate({"name": "p", "version": "1", "kind": kind, "kit": f"kits/{kind}", **fields})


def model(dialect: Dialect, **fields: Any) -> ModelChoice:
    return replace(ModelChoice("lab/m", "m-1", dialect, efforts=("low", "high")), **fields)


def context(choice: ModelChoice | None, **settings: Any) -> PlanContext:
    return replace(CONTEXT, model=choice, settings=AgentSettings.of(settings))


def plan(kind: str, where: PlanContext, *, manifest: dict[str, Any] | None = None, **of_task: Any) -> Plan:
    return scaffold_for(kind).plan(task(**of_task), AGENT, program(kind, **(manifest or {})), where)


def read(kind: str, case: str) -> tuple[list[Translated], AgentReport]:
    """Return what the kind's parser makes of a recording."""
    return read_lines(kind, (RECORDED / kind / f"{case}.jsonl").read_bytes().split(b"\n"))


def read_lines(kind: str, lines: list[bytes], stream: str = "stdout") -> tuple[list[Translated], AgentReport]:
    parser = scaffold_for(kind).line_parser(program(kind))
    assert parser is not None
    return [event for line in lines for event in parser.line(stream, line)], parser.report()


def completed(kind: str, code: int | None, report: AgentReport | None, *, signal: int | None = None) -> bool:
    return scaffold_for(kind).completed(ExitReport(code, signal, 1.0, None), program(kind), report)
