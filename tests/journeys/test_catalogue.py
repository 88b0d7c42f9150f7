"""Faults of the catalogue that only the whole service can show."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.jobs import make_task, python_agent, record, submit
from tests.journeys.stack import Stack, wait_until
from workstead import Client

MIB = 1 << 20


def _rss(pid: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


@pytest.mark.fault(90)
@pytest.mark.timeout(300)
def test_a_gigabyte_of_output_is_counted_cut_and_costs_the_worker_no_memory(service: Stack) -> None:
    program = """
import sys
block = b"y\\n" * (1 << 19)
for _ in range(1000):
    sys.stdout.buffer.write(block)
"""
    agent = python_agent(service, program)
    task = make_task(service, limits={"wall_clock_s": 250})
    record(service, submit(service, make_task(service), python_agent(service, "print('warm')")))
    pid = service.pid("worker")
    before = peak = _rss(pid)
    run = submit(service, task, agent)
    while service.call("GET", f"/v1/runs/{run}")["phase"] in ("queued", "provisioning", "running", "collecting"):
        peak = max(peak, _rss(pid))
        time.sleep(0.05)
    seen = record(service, run, 200)
    total = 1000 * MIB
    closed = next(e["payload"] for e in seen.of("output.closed") if e["payload"]["stream"] == "stdout")

    assert seen.run["ended_because"] == "completed"
    assert closed["total_bytes"] == total
    assert sum(e["payload"]["bytes"] for e in seen.of("output")) <= 16 * MIB
    assert len(seen.of("output.truncated")) == 1
    assert "output_truncated" in seen.run["flags"]
    assert closed["log_bytes"] == 256 * MIB
    assert peak - before < 50 * MIB, f"the worker grew by {(peak - before) / MIB:.0f} MiB"
    print(f"worker RSS +{(peak - before) / MIB:.1f} MiB")


@pytest.mark.fault(39)
def test_a_run_token_opens_nothing_after_its_run(service: Stack) -> None:
    program = """
import os, time
print(os.environ["WORKSTEAD_RUN_TOKEN"], flush=True)
time.sleep(3)
"""
    run = submit(service, make_task(service), python_agent(service, program))

    def printed() -> str | None:
        return next((e["payload"]["text"].strip() for e in service.events(run) if e["type"] == "output"), None)

    token = {"Authorization": f"Bearer {wait_until('a token', printed)}"}
    during = service.http.get("/v1/me", headers=token)
    assert during.status_code == 200
    assert service.http.get("/v1/runs", headers=token).status_code == 403
    record(service, run)
    assert service.http.get("/v1/me", headers=token).status_code == 401


@pytest.mark.fault(101)
def test_a_second_run_sees_nothing_of_the_first(service: Stack) -> None:
    program = """
import os, pathlib, socket
for place in ("/workspace", "/tmp", "/var/tmp", "/dev/shm", "/run", "/workspace/.home"):
    for folder, dirs, names in os.walk(place):
        for name in names:
            if "secret-of-a-run" in name:
                print("seen", folder, name, flush=True)
    try:
        pathlib.Path(place, "secret-of-a-run").write_text("mine")
    except OSError:
        pass
print(socket.gethostname(), sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else [])
"""
    task, agent = make_task(service), python_agent(service, program)
    outputs = [record(service, submit(service, task, agent)).output(1) for _ in range(3)]
    assert "seen" not in "".join(outputs)
    assert len(set(outputs)) == 1, outputs
    assert "'lo'" in outputs[0] or "[]" in outputs[0]
    assert "eth" not in outputs[0]


def _follow(service: Stack, run: str, out: list[list[int]]) -> None:
    """Follow with the client, which resumes; collect event numbers."""
    with Client(service.url, service.token) as client:
        out.append([event.seq for event in client.runs.events(run)])


TICKER = """
import time
for i in range(400):
    print("tick", i, flush=True)
    time.sleep(0.02)
"""


def _followed_while(service: Stack, hurt: Any) -> None:
    """Twenty readers follow four runs while ``hurt`` happens; each sees every event exactly once."""
    task, agent = make_task(service), python_agent(service, TICKER)
    runs = [submit(service, task, agent) for _ in range(4)]
    for run in runs:
        wait_until("it works", lambda run=run: service.call("GET", f"/v1/runs/{run}")["phase"] == "running")
    seen: dict[str, list[list[int]]] = {run: [] for run in runs}
    readers = [threading.Thread(target=_follow, args=(service, runs[i % 4], seen[runs[i % 4]])) for i in range(20)]
    for reader in readers:
        reader.start()
    time.sleep(1.5)
    hurt()
    for run in runs:
        expected = record(service, run)
        assert expected.run["outcome"] == "graded"
        assert expected.run["attempt"] == 1
        assert expected.output(1) == "".join(f"tick {i}\n" for i in range(400))
    for reader in readers:
        reader.join(60)
    for run in runs:
        numbers = [e["seq"] for e in service.events(run)]
        assert len(seen[run]) == 5
        assert all(found == numbers for found in seen[run])


@pytest.mark.fault(116)
@pytest.mark.timeout(240)
def test_a_database_that_is_killed_under_twenty_streams_loses_nothing(service: Stack) -> None:
    _followed_while(service, lambda: service.kill("postgres"))


@pytest.mark.fault(128)
@pytest.mark.timeout(240)
def test_a_control_plane_that_is_told_to_stop_drains_and_leaves_runs_alone(service: Stack) -> None:
    def restart() -> None:
        containers = set(service.leftovers().containers())
        started = time.monotonic()
        service.signal("supervisor", signal.SIGTERM)
        service.stop()
        assert time.monotonic() - started <= 12
        left = set(service.leftovers().containers())
        assert len(left & containers) >= 4
        assert not service.leftovers().processes()
        service.start()

    _followed_while(service, restart)
