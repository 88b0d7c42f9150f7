"""What driving a run answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workstead.models import Model


class AssignedFile(Model):
    path: str
    sha256: str
    size_bytes: int


class Assignment(Model):
    run_id: str
    phase: str
    driver: str
    instruction: str
    workspace: str
    output_dir: str
    collect: Sequence[str]
    files: Sequence[AssignedFile]
    model: str | None
    settings: dict[str, Any]
    deadline_at: datetime | None
    client_messages: int | None


class Lease(Model):
    run_id: str
    attempt: int
    holder: str
    lease: str | None
    run_token: str | None
    """For model calls through the gateway's public side."""
    expires_at: datetime
    heartbeat_s: float
    deadline_at: datetime | None


class Executed(Model):
    """How a program ended; exactly one of ``code`` and ``signal`` is set."""

    call_id: str
    code: int | None
    signal: int | None
    stdout: str
    stderr: str
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    timed_out: bool


class ListedFile(Model):
    name: str
    kind: str
    """file | directory | link | other"""
    size_bytes: int
    modified_at: datetime


class MessageReply(Model):
    """The simulated client's word."""

    message_id: str
    text: str
    left: int
    """Messages that it still answers."""
