"""Publications: an export that stays as it is, at an address that stays (NEEDS B24)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AwareDatetime, Field

from service.domain.reports import Cell, Report, ReportTable
from service.domain.tasks import Strict

AGENT = "agent"
"""Column that names whose a row is."""
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class PublicationRequest(Strict):
    export: Annotated[str, Field(min_length=1, max_length=64)]
    """Operation ``export`` that succeeded; what anybody may read was made with profile ``public``."""
    name: Slug
    """Those of one name are versions of one thing, each linking to the one before it."""
    public: bool = False
    """Whether anybody who has the address may read it; else the project's tokens with ``reports:read``."""


class Withdrawal(Strict):
    """A row that is not held up any more. The figures of the others stay as they were published."""

    agent: Annotated[str, Field(min_length=1, max_length=200)]
    """Its label, or alias, as it was published."""
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]


class Withdrawn(Withdrawal):
    author: str
    at: AwareDatetime


def agents_of(report: Report) -> set[str]:
    """Return the agents that have a row somewhere."""
    return {str(row[AGENT]) for table in report.tables for row in table.rows if row.get(AGENT) is not None}


def as_shown(report: Report, withdrawn: Sequence[Withdrawn]) -> Report:
    """Return the report with every figure of the withdrawn agents taken out, and the reason said under each table."""
    if not withdrawn:
        return report
    tables = [_without(table, withdrawn) for table in report.tables]
    gone = {one.agent for one in withdrawn}
    validity = [
        line.model_copy(update={"by_agent": {a: n for a, n in line.by_agent.items() if a not in gone}})
        for line in report.validity
    ]
    return report.model_copy(update={"tables": tables, "validity": validity})


def _without(table: ReportTable, withdrawn: Sequence[Withdrawn]) -> ReportTable:
    theirs = [one for one in withdrawn if any(row.get(AGENT) == one.agent for row in table.rows)]
    if not theirs:
        return table
    gone = {one.agent for one in theirs}
    figures = {column.name for column in table.columns if column.unit} | {
        f"{column.interval}_{end}" for column in table.columns if column.interval for end in ("low", "high")
    }
    rows = [_emptied(row, figures) if row.get(AGENT) in gone else row for row in table.rows]
    notes = [f"{one.agent}: withdrawn on {one.at.date().isoformat()}: {one.reason}" for one in theirs]
    return table.model_copy(update={"rows": rows, "notes": [*table.notes, *notes]})


def _emptied(row: dict[str, Cell], figures: set[str]) -> dict[str, Cell]:
    return {name: None if name in figures else value for name, value in row.items()}
