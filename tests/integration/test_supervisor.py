"""``serve`` as a process: what it starts, what it survives, what it leaves (nothing)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from service.supervisor import leftovers, proc
from service.supervisor.account import server_account
from service.supervisor.cluster import Cluster
from service.supervisor.postgres import EmbeddedPostgres
from service.supervisor.status import Status, read_status
from tests.fixtures.postgres import plain_url

REPOSITORY = Path(__file__).parents[2]
SLEEPER = ["/bin/sleep", "1000"]
GONE_S = 5


class Served:
    """A supervisor in a process of its own."""

    def __init__(self, data_dir: Path, **options: Any) -> None:
        self.data_dir = data_dir
        self.output = data_dir / "serve.out"
        command = [sys.executable, "-m", "tests.fixtures.serve_program", str(data_dir), json.dumps(options)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output)

    def wait_ready(self) -> "Served":
        assert proc.wait_until(lambda: "ready\n" in self.text() or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.text()
        return self

    def text(self) -> str:
        return self.output.read_text()

    def status(self) -> Status:
        status = read_status(self.data_dir)
        assert status is not None
        return status

    def pid(self, child: str) -> int:
        found: list[int] = []

        def running() -> bool:
            pid = self.status()["children"][child]["pid"]
            found[:] = [pid] if pid is not None and proc.start_ticks(pid) is not None else []
            return bool(found)

        assert proc.wait_until(running, 60)
        return found[0]

    def end(self, sig: signal.Signals = signal.SIGTERM, timeout_s: float = 30) -> int:
        self.process.send_signal(sig)
        return self.process.wait(timeout_s)


@pytest.fixture
def served(empty_dir: Path) -> Iterator[Callable[..., Served]]:
    """Start supervisors; what is left of them at the end is killed."""
    started: list[Served] = []

    def start(**options: Any) -> Served:
        started.append(Served(empty_dir, **options))
        return started[-1]

    yield start
    for serve in started:
        serve.process.kill()
        serve.process.wait()
    leftovers.kill_all(Cluster(empty_dir), server_account())


def postgres_processes(data_dir: Path) -> list[int]:
    return leftovers.processes(Cluster(data_dir), server_account())


def value(url: str, statement: str) -> object:
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def alive(pid: int) -> bool:
    return proc.start_ticks(pid) is not None


def test_children_start_in_order_with_the_url_and_everything_ends_on_sigterm(
    data_dir: Path, served: Callable[..., Served]
) -> None:
    drain = "trap 'echo drained; exit 0' TERM; echo $WORKSTEAD_DATABASE_URL; while :; do sleep 0.05; done"
    serve = served(children={"api": ["/bin/sh", "-c", drain], "worker": SLEEPER}).wait_ready()
    status = serve.status()
    assert list(status["children"]) == ["postgres", "api", "worker"]
    assert (status["pid"], status["state"]) == (serve.process.pid, "ready")
    pids = [serve.pid(name) for name in status["children"]]
    log = data_dir / "log" / "api.log"
    assert proc.wait_until(lambda: "\n" in log.read_text(), 60)
    assert value(log.read_text().strip(), "SELECT 1") == 1
    assert serve.end() == 0
    assert log.read_text().endswith("drained\n")
    assert not any(alive(pid) for pid in pids)
    assert postgres_processes(data_dir) == []
    assert read_status(data_dir) is None
    assert "shut down" in (data_dir / "log" / "postgres.log").read_text()


def test_a_killed_child_comes_back_and_what_it_started_is_gone(data_dir: Path, served: Callable[..., Served]) -> None:
    started = data_dir / "grandchild"
    program = f"sleep 1000 & echo $! > {started}.new; mv {started}.new {started}; wait"
    serve = served(children={"worker": ["/bin/sh", "-c", program], "api": SLEEPER}).wait_ready()
    first, other = serve.pid("worker"), serve.pid("api")
    assert proc.wait_until(started.exists, 60)
    grandchild = int(started.read_text())
    os.kill(first, signal.SIGKILL)
    assert proc.wait_until(lambda: serve.pid("worker") != first, 60)
    assert not alive(grandchild)
    assert serve.pid("api") == other
    worker = serve.status()["children"]["worker"]
    assert (worker["restarts"], worker["last_exit"]) == (1, -signal.SIGKILL)
    assert serve.end() == 0


def test_a_killed_database_comes_back_with_its_rows_and_children_stay(
    data_dir: Path, served: Callable[..., Served]
) -> None:
    serve = served(children={"api": SLEEPER}).wait_ready()
    url = EmbeddedPostgres(data_dir).url
    value(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    child = serve.pid("api")
    for _ in range(3):
        before = serve.pid("postgres")
        os.kill(before, signal.SIGKILL)
        assert proc.wait_until(lambda before=before: serve.pid("postgres") != before, 60)
        assert proc.wait_until(lambda: _answers(url), 60)
        assert value(url, "SELECT answer FROM kept") == 42
    assert serve.pid("api") == child
    assert serve.end() == 0
    assert postgres_processes(data_dir) == []


def _answers(url: str) -> bool:
    try:
        return value(url, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


def test_nothing_outlives_a_killed_supervisor_and_the_next_one_goes_on(
    data_dir: Path, served: Callable[..., Served]
) -> None:
    stubborn = ["/bin/sh", "-c", "trap '' TERM INT HUP; while :; do sleep 0.1; done"]
    serve = served(children={"api": stubborn, "worker": SLEEPER}).wait_ready()
    value(EmbeddedPostgres(data_dir).url, "CREATE TABLE kept AS SELECT 42 AS answer")
    pids = [serve.pid(name) for name in ("api", "worker", "postgres")]
    killed_at = time.monotonic()
    assert serve.end(signal.SIGKILL) == -signal.SIGKILL
    assert proc.wait_until(lambda: not any(map(alive, pids)) and not postgres_processes(data_dir), GONE_S)
    print(f"all gone {time.monotonic() - killed_at:.2f} s after the kill")
    assert read_status(data_dir) is None
    serve.output.unlink()
    again = served(children={"api": SLEEPER}).wait_ready()
    assert value(EmbeddedPostgres(data_dir).url, "SELECT answer FROM kept") == 42
    assert again.end() == 0


def test_a_kill_at_any_moment_of_the_start_leaves_nothing_and_blocks_nothing(
    empty_dir: Path, served: Callable[..., Served]
) -> None:
    seed = random.randrange(10_000)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for _ in range(6):
        serve = served(children={"api": SLEEPER})
        time.sleep(moments.uniform(0.2, 2.0))
        serve.end(signal.SIGKILL)
        assert proc.wait_until(lambda: not _users_of(empty_dir), GONE_S), _users_of(empty_dir)
        serve.output.unlink()
    serve = served(children={"api": SLEEPER}).wait_ready()
    assert value(EmbeddedPostgres(empty_dir).url, "SELECT 1") == 1
    assert serve.end() == 0


def _users_of(data_dir: Path) -> list[int]:
    """Processes that name the directory, or are of its cluster: initdb and its helper too."""
    name = str(data_dir)
    own = list(proc.find(server_account().uid, lambda argv: any(name in word for word in argv)))
    return [*own, *postgres_processes(data_dir)]


def test_the_second_of_two_supervisors_is_told_and_the_first_is_not_disturbed(
    data_dir: Path, served: Callable[..., Served]
) -> None:
    first = served(children={"api": SLEEPER}).wait_ready()
    command = [sys.executable, "-m", "tests.fixtures.serve_program", str(data_dir), "{}"]
    second = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode != 0
    assert f"{data_dir} is in use by process {first.process.pid} (lock serve.lock)" in second.stderr
    assert first.status()["pid"] == first.process.pid
    assert first.end() == 0


def test_a_child_that_does_not_drain_is_killed(
    data_dir: Path, served: Callable[..., Served], empty_database_url: str
) -> None:
    stubborn = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    serve = served(children={"api": stubborn}, url=empty_database_url, drain_s=1.0).wait_ready()
    pid, asked_at = serve.pid("api"), time.monotonic()
    assert serve.end() == 0
    assert 1.0 <= time.monotonic() - asked_at < 6.0
    assert not alive(pid)


def test_a_second_signal_ends_the_draining(
    data_dir: Path, served: Callable[..., Served], empty_database_url: str
) -> None:
    stubborn = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    serve = served(children={"api": stubborn}, url=empty_database_url, drain_s=60.0).wait_ready()
    serve.process.send_signal(signal.SIGINT)
    assert proc.wait_until(lambda: serve.status()["state"] == "stopping", 60)
    assert serve.end(signal.SIGINT, timeout_s=10) == 0


def test_with_a_url_no_server_of_our_own_is_started(
    empty_dir: Path, served: Callable[..., Served], empty_database_url: str
) -> None:
    show = ["/bin/sh", "-c", "echo $WORKSTEAD_DATABASE_URL; exec sleep 1000"]
    serve = served(children={"api": show}, url=empty_database_url).wait_ready()
    assert list(serve.status()["children"]) == ["api"]
    assert not (empty_dir / "pg").exists()
    assert proc.wait_until(lambda: (empty_dir / "log" / "api.log").read_text() == f"{empty_database_url}\n", 60)
    assert serve.end() == 0


def test_a_failed_migration_is_shown_and_leaves_nothing(data_dir: Path, served: Callable[..., Served]) -> None:
    serve = served(children={"api": SLEEPER}, migrate_fails=True)
    assert serve.process.wait(60) != 0
    assert "no migration of a postgresql+psycopg database today" in serve.text()
    assert postgres_processes(data_dir) == []
    assert not (data_dir / "log" / "api.log").exists()


def test_a_child_that_cannot_start_is_tried_again_and_does_not_stop_the_others(
    data_dir: Path, served: Callable[..., Served], empty_database_url: str
) -> None:
    children = {"broken": [str(data_dir / "no-such-program")], "api": SLEEPER}
    serve = served(children=children, url=empty_database_url).wait_ready()
    assert proc.wait_until(lambda: serve.text().count("child_not_started") >= 3, 60)
    assert alive(serve.pid("api"))
    assert serve.end() == 0


def test_a_flood_of_output_stays_bounded(
    data_dir: Path, served: Callable[..., Served], empty_database_url: str
) -> None:
    flood = "head -c 60000000 /dev/zero | tr '\\0' x; echo; exec sleep 1000"
    serve = served(children={"api": ["/bin/sh", "-c", flood]}, url=empty_database_url).wait_ready()
    log, previous = data_dir / "log" / "api.log", data_dir / "log" / "api.log.1"
    assert proc.wait_until(lambda: previous.exists() and log.stat().st_size < 16 * 1024 * 1024, 60)
    assert previous.stat().st_size <= 8 * 1024 * 1024
    assert serve.end() == 0
