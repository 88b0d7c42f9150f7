"""A child of the supervisor: what it is, how it is started, how long to wait before it is started again."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from service.supervisor.logs import open_log
from service.supervisor.postgres import EmbeddedPostgres
from service.supervisor.proc import die_with_parent

STABLE_S = 10.0
_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 10.0


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A program to keep running. It gets SIGTERM to drain, later SIGKILL; it must survive both."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment of the child; :func:`~service.supervisor.serve.serve` adds the database's URL."""


class Member(Protocol):
    """Something that can be started again and again."""

    @property
    def name(self) -> str: ...
    @property
    def log(self) -> Path | None: ...
    def spawn(self) -> subprocess.Popen[bytes]: ...


class Program:
    """A :class:`ChildSpec` as a member. Its output goes to ``log``, or to our own output when that is ``None``."""

    def __init__(self, spec: ChildSpec, log: Path | None) -> None:
        self._spec = spec
        self.name = spec.name
        self.log = log

    def spawn(self) -> subprocess.Popen[bytes]:
        if self.log is None:
            return self._start(None)
        with open_log(self.log) as log:
            return self._start(log.fileno())

    def _start(self, output: int | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(self._spec.argv),
            env=dict(self._spec.env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is ours to hand on; and what the child leaves can be killed as a group
            # SIGKILL, not SIGTERM: its database may be gone with us, so there is nothing to drain into
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509  # one prctl; no lock is taken
        )


class Database:
    """The embedded PostgreSQL as a member."""

    name = "postgres"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self.log: Path | None = server.log

    def spawn(self) -> subprocess.Popen[bytes]:
        return self._server.launch()


class Backoff:
    """Delay before the next start: doubles from 0.2 s to 10 s with jitter, reset by a life of 10 s."""

    def __init__(self) -> None:
        self._failures = 0
        self._started = time.monotonic()

    def started(self) -> None:
        self._started = time.monotonic()

    def next_delay_s(self) -> float:
        if time.monotonic() - self._started >= STABLE_S:
            self._failures = 0
        longest = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # spreads load, guards nothing


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL the child and what it started. Before it is reaped: until then nobody else can have its number."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
