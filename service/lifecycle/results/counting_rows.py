"""Rows of tables runs and exclusions with what the benchmark's policies make of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from service.domain.benchmarks import Policies
from service.domain.counting import Counted, Facts, counted
from service.store.result_tables.of_runs import FACTS
from service.store.result_tables.scope import EvaluationHead

Row = dict[str, Any]
_PLAIN = Policies()


def policies_of(heads: Iterable[EvaluationHead]) -> dict[str | None, Policies]:
    """Return evaluation → policies; runs of others are counted by the plain ones."""
    return {head.id: _PLAIN if head.benchmark is None else head.benchmark.policies for head in heads}


def counted_rows(table: str, rows: Sequence[Row], policies: Mapping[str | None, Policies]) -> list[Row]:
    """Return the rows with ``counted`` and ``exclusion``; of table exclusions only those that are not counted."""
    if table not in ("runs", "exclusions"):
        return list(rows)
    found = [(row, _counted(row, policies)) for row in rows]
    kept = [(row, said) for row, said in found if table == "runs" or said.exclusion is not None]
    return [{**row, "counted": said.value, "exclusion": said.exclusion} for row, said in kept]


def _counted(row: Row, policies: Mapping[str | None, Policies]) -> Counted:
    facts = Facts(**{name: row[f"fact_{name}"] for name in FACTS})
    return counted(facts, policies.get(row["evaluation_id"], _PLAIN))
