"""Operations: work that takes longer than a request."""

from enum import StrEnum


class OperationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED_OPERATIONS = frozenset({OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED})
MAX_LOG_LINES = 200
"""Of one operation; the oldest go first."""
MAX_LOG_CHARS = 500
"""Of one line."""
