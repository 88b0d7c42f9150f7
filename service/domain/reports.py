"""Reports: figures over the result tables, each table with its denominator, what it left out and why, and how it was computed.

The same object is the JSON of the API, the tables of the command line, the page and the files of an export.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.domain.benchmarks import Grouping, Policies
from service.domain.evaluations import Seed
from service.domain.tasks import Strict

ReportKind = Literal["overview", "jobbench", "rli", "payworthy", "freelance"]
Cell = str | float | int | bool | None
"""A value; null: undefined, with the reason in the table's notes where it is not plain."""


class ReportColumn(Strict):
    name: str
    """Key in the rows."""
    title: str
    unit: Literal["", "count", "fraction", "percent", "usd", "s", "elo", "points", "ratio"] = ""
    """``fraction`` is 0 to 1 in the data and shown as percent; ``percent`` is 0 to 100 in the data."""
    interval: str | None = None
    """Prefix of the columns ``<prefix>_low`` and ``<prefix>_high`` with its 95 % interval."""


class ReportTable(Strict):
    """One table or figure."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    """Stable: what a verifier knows its formula by."""
    title: str
    columns: list[ReportColumn]
    rows: list[dict[str, Cell]]
    n: int
    """Runs (or votes, jobs, pairs: see ``unit``) that the figures rest on."""
    unit: str = "runs"
    excluded: dict[str, int] = Field(default_factory=dict[str, int])
    """Why → how many were left out."""
    method: str
    """Formula and source in words."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Everything that a second computation needs: seed, draws, prior, policy, coding, reference."""
    notes: list[str] = Field(default_factory=list[str])
    plot: dict[str, Any] | None = None
    """What is drawn: ``mark`` and the columns on x, y and colour (service.reporting.plots)."""


class ReportSettings(Strict):
    """What a reader may choose; all of it is printed in the report."""

    seed: Seed | None = None
    """Of intervals; null: the evaluation's."""
    draws: int = Field(default=1000, ge=100, le=10_000)
    """Of bootstraps, unless a paper says another number (100 for Elo, 2 000 for AUC)."""
    missing: Literal["zero", "exclude", "refuse"] | None = None
    """Null: the benchmark's policy."""
    contaminated: Literal["include", "exclude"] = "include"
    disputed: Literal["include", "exclude"] = "include"
    declared_costs: bool = False
    """Whether declared costs count where only measured ones do (autoflation)."""
    grouping: str | None = None
    """Name of a grouping of the benchmark, or annotations (``name@version``); null: the benchmark's first."""
    reference_agent: str | None = None
    """Label or id: what others are compared with."""
    plans_beside: list[str] = Field(default_factory=list[str], max_length=8)
    """Plans shown beside the primary one."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=32)
    """Of one kind of report, such as ``human_edge_coding`` and ``smoothing``; unknown ones are refused."""


class ReportHeader(Strict):
    title: str
    benchmark: str | None
    """``name@version``"""
    evaluations: list[str]
    plan: str
    policies: Policies
    notice: str
    agents: int
    tasks: int
    runs: int
    revision: int | None = None
    """Of the evaluation that it was computed from."""
    seed: Seed = 0
    """The evaluation's; the settings' own goes before it."""
    groupings: list[Grouping] = Field(default_factory=list[Grouping])
    """The benchmark's."""
    settings: ReportSettings


class ValidityLine(Strict):
    """One thing that changes a comparison (NEEDS E 2)."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    text: str
    count: int
    of: int
    by_agent: dict[str, int] = Field(default_factory=dict[str, int])
    warning: bool = False


class Report(Strict):
    kind: ReportKind | Literal["comparison"]
    header: ReportHeader
    validity: list[ValidityLine]
    tables: list[ReportTable]
