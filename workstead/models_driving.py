"""What driving a run answers."""

import base64
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


class Picture(Model):
    """A picture of the screen in the run's record; :meth:`AsyncDrive.picture` returns its bytes."""

    sha256: str
    format: str
    """png | webp | jpeg"""
    width: int
    height: int
    size_bytes: int
    href: str
    data_base64: str | None = None


class DesktopActed(Model):
    """What came of a batch on the screen; an action that failed is in ``results``."""

    call_id: str
    results: Sequence[dict[str, Any]]
    """index, error, detail, text, image: one for each action that was tried, the first failing one the last."""
    state: dict[str, Any] | None
    """width, height, cursor_x, cursor_y, title, windows, held, settled"""
    screenshot: Picture | None
    images: Sequence[Picture]
    """Of the actions ``screenshot`` and ``zoom``."""
    checks: Sequence[dict[str, Any]]
    """What the provider wants confirmed, as its payloads say."""
    ending: str | None
    """done | fail: in vocabularies that have a word for it."""
    error: str | None
    detail: str
    took_s: float

    @property
    def image(self) -> bytes:
        """The screenshot's bytes, if it came with the answer."""
        return base64.b64decode((self.screenshot and self.screenshot.data_base64) or "")

    @property
    def failed(self) -> str | None:
        """The first error, of an action or of the whole batch, in words."""
        found = [f"{r['error']}: {r.get('detail', '')}" for r in self.results if r.get("error")]
        return next(iter(found), self.error and f"{self.error}: {self.detail}")
