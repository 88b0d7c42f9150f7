"""Errors that callers can act on. Tree::

    WorksteadError
      Expected             the caller's doing; rendered as an RFC 9457 problem, never pages anybody
        Invalid  422 · NotFound 404 · Conflict 409 · Unauthenticated 401 · Forbidden 403
        TooLarge 413 · PreconditionFailed 412 · PreconditionRequired 428 · Gone 410 · RateLimited 429 · Unavailable 503
      Fault                ours; rendered as 500 without detail, logged with a traceback
        FenceLost          an attempt's fence moved on: whoever holds the old one must stop writing
        SandboxError       the sandbox's world (see service/sandboxes/contract.py)

``type`` is a stable slug; the API renders it as ``urn:workstead:problem:<type>``.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class WorksteadError(Exception):
    status: ClassVar[int] = 500

    def __init__(self, type: str, detail: str = "", **fields: Any) -> None:
        super().__init__(detail or type)
        self.type = type
        self.detail = detail
        self.fields: Mapping[str, Any] = fields


class Expected(WorksteadError):
    status = 400


class Invalid(Expected):
    status = 422


class NotFound(Expected):
    status = 404


class Conflict(Expected):
    status = 409


class Unauthenticated(Expected):
    status = 401


class Forbidden(Expected):
    status = 403


class TooLarge(Expected):
    status = 413


class PreconditionFailed(Expected):
    status = 412


class PreconditionRequired(Expected):
    status = 428


class Gone(Expected):
    status = 410


class RateLimited(Expected):
    status = 429


class Unavailable(Expected):
    status = 503


class Fault(WorksteadError):
    status = 500


class FenceLost(Fault):
    def __init__(self, run_id: str, attempt: int) -> None:
        super().__init__("fence_lost", f"attempt {attempt} of {run_id} belongs to another worker now")
