"""``stream``: an agent's write to a client's SSE. One run at 10 000 lines/s, then twenty at 500 lines/s each."""

import threading
from typing import Any

from tests.bench.client import Fast
from tests.bench.report import Result, quantile
from tests.journeys.jobs import make_task, python_agent, submit
from tests.journeys.stack import Stack, stack

WRITER = """
import sys, time
rate, seconds = {rate}, {seconds}
begin, sent = time.monotonic(), 0
while sent < rate * seconds:
    due = min(rate * seconds, int((time.monotonic() - begin) * rate) + 1)
    while sent < due:
        sys.stdout.write(f"{{sent}} {{time.time():.6f}}\\n")
        sent += 1
    sys.stdout.flush()
    time.sleep(0.001)
"""


def _read(fast: Fast, run: str, out: list[tuple[list[float], int]]) -> None:
    """Append (latencies in s of every line, lines seen in order)."""
    latencies: list[float] = []
    rest, expected = "", 0
    for arrived, event in fast.sse(f"/v1/runs/{run}/events?types=output&until=ended"):
        payload: dict[str, Any] = event.get("payload", {})
        if event["type"] != "output" or payload["stream"] != "stdout":
            continue
        *lines, rest = (rest + payload["text"]).split("\n")
        for line in lines:
            number, sent = line.split()
            assert int(number) == expected, (number, expected)
            expected += 1
            latencies.append(arrived - float(sent))
    out.append((latencies, expected))


def _series(running: Stack, runs: int, rate: int, seconds: int) -> dict[str, float]:
    limits = {"wall_clock_s": seconds + 60, "cpus": 1.0, "memory_bytes": 128 << 20, "disk_bytes": 1 << 30}
    task = make_task(running, limits=limits)
    agent = python_agent(running, WRITER.format(rate=rate, seconds=seconds))
    seen: list[tuple[list[float], int]] = []
    threads: list[threading.Thread] = []
    for _ in range(runs):
        run = submit(running, task, agent)
        threads.append(threading.Thread(target=_read, args=(Fast(running), run, seen)))
        threads[-1].start()
    for thread in threads:
        thread.join(seconds + 180)
    lines = [latency for latencies, _ in seen for latency in latencies]
    lost = runs * rate * seconds - sum(count for _, count in seen)
    return {
        "p50_ms": quantile(lines, 0.5) * 1e3,
        "p99_ms": quantile(lines, 0.99) * 1e3,
        "lost": lost,
        "lines": len(lines),
    }


def stream(seconds: int = 60) -> Result:
    with stack(WORKSTEAD_WORKER__SLOTS="24", WORKSTEAD_WORKER__WARM_TOTAL="0") as running:
        one = _series(running, 1, 10_000, seconds)
        many = _series(running, 20, 500, seconds)
    detail = {"one_run": one, "twenty_runs": many, "seconds": seconds}
    return Result("stream", one["p50_ms"], "ms", goal="≤ 10 ms p50, none lost", detail=detail)
