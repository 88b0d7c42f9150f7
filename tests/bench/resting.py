"""``idle``: CPU of all processes with nothing to do. ``overhead``: CPU that twenty idle runs add, per run-hour."""

import os
import time
from pathlib import Path

from tests.bench.report import Result
from tests.journeys.jobs import make_agent, make_task, submit
from tests.journeys.stack import Stack, stack, wait_until

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(running: Stack) -> float:
    """Return CPU seconds so far of the supervisor and all below it, PostgreSQL's backends included."""
    root, total = running.pid("supervisor"), 0
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    for pid, used in ticks.items():
        ancestor = pid
        while ancestor not in (0, root):
            ancestor = parents.get(ancestor, 0)
        total += used if ancestor == root else 0
    return total / _TICK


def _share(running: Stack, seconds: float) -> float:
    before, started = cpu_s(running), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(running) - before) / (time.monotonic() - started)


def idle(seconds: float = 60) -> Result:
    with stack() as running:
        time.sleep(10)
        share = _share(running, seconds)
    return Result("idle", share * 100, "% of a core", goal="≤ 4 %", detail={"seconds": seconds})


def overhead(runs: int = 20, seconds: float = 90) -> Result:
    with stack(WORKSTEAD_WORKER__SLOTS=str(runs), WORKSTEAD_WORKER__WARM_TOTAL="0") as running:
        time.sleep(10)
        without = _share(running, seconds)
        task = make_task(running, limits={"wall_clock_s": 3600, "memory_bytes": 64 << 20, "disk_bytes": 1 << 30})
        agent = make_agent(running, ["/bin/sleep", "3600"])
        ids = [submit(running, task, agent) for _ in range(runs)]
        wait_until("all runs work", lambda: all(_phase(running, i) == "running" for i in ids), 180, 0.5)
        time.sleep(15)
        share = _share(running, seconds) - without
        for run in ids:
            running.call("POST", f"/v1/runs/{run}/stop", json={"mode": "discard"})
        wait_until("all runs are done", lambda: all(_phase(running, i) == "done" for i in ids), 180, 0.5)
    return Result("overhead", share * 3600 / runs, "CPU s per run-hour", goal="≤ 5 s", detail={"runs": runs})


def _phase(running: Stack, run: str) -> str:
    return str(running.call("GET", f"/v1/runs/{run}")["phase"])
