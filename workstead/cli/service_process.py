"""The service as a child process of this one: for ``serve``, ``token`` and the demo."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from workstead.config import CLIENT_FILE, Connection, read_file
from workstead.errors import WorksteadError
from workstead.sync import Client

READY_S = 180.0
STOP_S = 40.0


class ServiceFailed(WorksteadError):
    """The service did not start, or did not stop, in its time."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", *arguments]


def environment(data_dir: Path | None, port: int | None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with the settings that the options stand for."""
    settings = dict(extra or {})
    if data_dir is not None:
        settings["WORKSTEAD_DATA_DIR"] = str(data_dir.absolute())
    if port is not None:
        settings["WORKSTEAD_API__PORT"] = str(port)
    return {**os.environ, **settings}


def replace_by_service(arguments: Sequence[str], env: Mapping[str, str]) -> None:
    """Become ``python -m service …``: signals and exit code are then its own. Does not return."""
    os.execve(sys.executable, command(*arguments), dict(env))  # noqa: S606 - no shell is the point


class LocalService:
    """``serve`` with a data directory of its own, from start to ready to gone. Use as a context manager."""

    def __init__(self, data_dir: Path, log: Path) -> None:
        self.data_dir = data_dir
        self.log = log

    def __enter__(self) -> Self:
        env = environment(self.data_dir, 0)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command("serve"), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self.connection = self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_ready(self) -> Connection:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            connection = read_file(self.data_dir / CLIENT_FILE)
            if connection is not None and answers(connection):
                return connection
            time.sleep(0.1)
        raise ServiceFailed(f"the service is not ready; the end of {self.log}:\n{self.log_tail()}")

    def log_tail(self, keep: int = 3000) -> str:
        return self.log.read_bytes()[-keep:].decode("utf-8", "replace")

    def stop(self) -> None:
        """Ask it to stop and wait. Raises ServiceFailed if it had to be killed."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
            raise ServiceFailed(f"the service did not stop within {STOP_S:.0f} s") from None


def answers(connection: Connection) -> bool:
    """Tell whether a service is ready there."""
    try:
        with Client(connection.url, connection.token, timeout_s=5, retries=0) as client:
            return client.ready()
    except WorksteadError:
        return False
