"""The whole service as a user runs it: ``python -m service serve`` on a data directory, and ways to hurt it."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from service.supervisor.status import read_status
from tests.journeys.leftovers import Leftovers

READY_S = 90.0
T = TypeVar("T")


def wait_until(what: str, check: Callable[[], T | None], timeout_s: float = 60.0, every_s: float = 0.02) -> T:
    """Return the first truthy answer of ``check``. Raises TimeoutError with ``what`` in words."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        time.sleep(every_s)
    raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")


def _free_port() -> int:
    """Return a port that stays free while the service restarts: below those that the kernel gives to clients."""
    while True:
        port = random.SystemRandom().randrange(16_384, 32_768)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Stack:
    """One deployment. Leaves nothing behind: :meth:`close` stops the service and removes its sandboxes' remains."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.data_dir = Path(tempfile.mkdtemp(prefix="workstead-journey-"))
        self.data_dir.chmod(0o711)
        self._settings = {
            "WORKSTEAD_DATA_DIR": str(self.data_dir),
            "WORKSTEAD_API__PORT": str(_free_port()),
            "WORKSTEAD_WORKER__HOST_ID": self.data_dir.name,
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._http: httpx.Client | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close(keep=bool(os.environ.get("WORKSTEAD_KEEP")))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close(keep=kind is not None and bool(os.environ.get("WORKSTEAD_KEEP")))

    def start(self) -> None:
        """Start the supervisor and wait until the API answers and a worker has registered."""
        log = (self.data_dir / "serve.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "service", "serve"],
            env={**os.environ, **self._settings}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()
        self.wait_ready()

    def wait_ready(self) -> None:
        wait_until(f"the service answers (logs in {self.data_dir})", self._is_ready, READY_S, 0.05)

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"serve ended with {self._process.returncode}: {self.log('serve')[-3000:]}")
        try:
            access = json.loads((self.data_dir / "client.json").read_text())
            before, headers = self._http, {"Authorization": f"Bearer {access['token']}"}
            self._http = httpx.Client(base_url=access["url"], headers=headers, timeout=30)
            if before is not None:
                before.close()
            return self._http.get("/readyz").status_code == 200
        except (OSError, ValueError, httpx.HTTPError):
            return False

    @property
    def http(self) -> httpx.Client:
        assert self._http is not None
        return self._http

    @property
    def url(self) -> str:
        return str(json.loads((self.data_dir / "client.json").read_text())["url"])

    @property
    def token(self) -> str:
        return str(json.loads((self.data_dir / "client.json").read_text())["token"])

    def log(self, name: str) -> str:
        path = self.data_dir / ("serve.log" if name == "serve" else f"log/{name}.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def pid(self, name: str) -> int:
        """Return the pid of ``supervisor``, ``postgres`` or a child, waiting until it has one."""
        return wait_until(f"{name} has a pid", lambda: self._pid(name))

    def _pid(self, name: str) -> int | None:
        status = read_status(self.data_dir)
        if status is None:
            return None
        if name == "supervisor":
            return status["pid"]
        child = status["children"].get(name)
        return child and child["pid"]

    def kill(self, name: str) -> None:
        """kill -9; a killed supervisor is started again, as init or a person would."""
        os.kill(self.pid(name), signal.SIGKILL)
        if name == "supervisor":
            assert self._process is not None
            self._process.wait(timeout=10)
            self.start()

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self.pid(name), number)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=40)

    def close(self, *, keep: bool = False) -> None:
        if self._http is not None:
            self._http.close()
        self.stop()
        if not keep:
            deployment = self.data_dir / "deployment"
            if deployment.exists():
                Leftovers(deployment.read_text().strip(), self.data_dir).sweep()
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def leftovers(self) -> "Leftovers":
        return Leftovers((self.data_dir / "deployment").read_text().strip(), self.data_dir)

    @staticmethod
    def image(name: str) -> str:
        """Return the id of a shipped image's newest build."""
        argv = ["docker", "images", "-q", "--no-trunc", f"workstead/{name}"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.split()[0]

    # What a client does

    def call(self, method: str, path: str, **kwargs: Any) -> Any:
        """Call the API, riding out restarts of it and its rates. Raises AssertionError with the problem otherwise."""
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self.http.request(method, path, **kwargs)
            except (httpx.TransportError, RuntimeError):  # RuntimeError: the client of before a restart was closed
                answer = None
            if answer is not None and answer.status_code not in (429, 503, 502, 500):
                assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
                return answer.json() if answer.content else None
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path}: {answer and answer.text}")
            time.sleep(float(answer.headers["Retry-After"]) if answer and answer.status_code == 429 else 0.1)

    def events(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", f"/v1/runs/{run_id}/events", params={"after": len(found), "limit": 500})
            if not page["data"]:
                return found
            found += page["data"]

    def wait_run(self, run_id: str, timeout_s: float = 120) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            run = self.call("GET", f"/v1/runs/{run_id}", params={"wait_s": 5, "until": "graded"})
            return run if run["phase"] == "done" else None

        return wait_until(f"{run_id} is done", ended, timeout_s)


@contextmanager
def stack(**settings: str) -> Generator[Stack]:
    with Stack(settings) as running:
        yield running
