"""The operation as clients see it."""

from typing import Any

from service.api.problems import problem_members
from service.api.rendering import Timestamp, View
from service.store.rows import Json, OperationRow


class LogLine(View):
    at: Timestamp
    text: str


class Operation(View):
    """Work that takes longer than a request. Poll it (ETag), wait for it (``wait_s``) or stream it."""

    id: str
    kind: str
    """benchmark_import | conformance | …"""
    state: str
    """queued | running | succeeded | failed | cancelled"""
    done: int
    total: int | None
    """Null while unknown."""
    unit: str
    """What ``done`` and ``total`` count."""
    log: list[LogLine]
    """The newest 200 lines."""
    result: dict[str, Any] | None
    """By kind; null unless it succeeded. benchmark_import: ``{benchmark_id, created}``."""
    problem: dict[str, Any] | None
    """RFC 9457 members; null unless it failed."""
    revision: int
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    updated_at: Timestamp | None
    cancel_requested_at: Timestamp | None


def operation_view(row: OperationRow) -> Operation:
    return Operation.model_validate(
        {
            "problem": None if row.problem is None else _problem(row.problem),
            **{name: getattr(row, name) for name in Operation.model_fields if name != "problem"},
        }
    )


def _problem(stored: Json) -> Json:
    return problem_members(stored["status"], stored["type"], stored["detail"], **stored["fields"])
