"""``start`` and ``start_cold``: POST /v1/runs to the first output frame at the client, against ``docker run --rm``."""

import os
import statistics
import time

from tests.bench.client import Fast
from tests.bench.docker_cli import docker_run_first_byte, profile_options
from tests.bench.peer_swerex import start_to_first_command
from tests.bench.report import Result, median_ratio
from tests.journeys.jobs import make_agent, make_task
from tests.journeys.stack import Stack, stack, wait_until

ECHO = ["/bin/echo", "first"]


def _once(fast: Fast, task: str, agent: str) -> tuple[float, str]:
    started = time.perf_counter()
    run = fast.post("/v1/runs", {"task": task, "agent": agent})["id"]
    for _, event in fast.sse(f"/v1/runs/{run}/events?types=output"):
        if event["type"] == "output":
            break
    return time.perf_counter() - started, run


def _series(running: Stack, image: str, options: list[str], pairs: int) -> tuple[list[float], list[float]]:
    fast = Fast(running)
    task = make_task(running, {f"data/part{i}.bin": os.urandom(2_000_000) for i in range(5)})
    agent = make_agent(running, ECHO)
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(pairs + 2):
        took, run = _once(fast, task, agent)
        running.wait_run(run)
        wait_until("the next warm sandbox is ready", lambda: _quiet(running), 60)
        base = docker_run_first_byte(image, ECHO, options)
        if turn >= 2:
            ours.append(took)
            theirs.append(base)
    return ours, theirs


def _quiet(running: Stack) -> bool:
    """The worker has finished with the last run, and has refilled what it wanted to."""
    time.sleep(0.6)
    return not running.call("GET", "/v1/runs", params={"phase": "queued", "limit": 1})["data"]


def start(pairs: int = 30) -> Result:
    with stack() as running:
        image = running.image("base")
        ours, theirs = _series(running, image, [], pairs)
    peer = start_to_first_command(5)
    value, base = statistics.median(ours), statistics.median(theirs)
    detail = {"pairs": pairs, "swe_rex_s": peer and statistics.median(peer)}
    return Result("start", value, "s", base, median_ratio(ours, theirs), "≤ 0.25", detail)


def start_cold(pairs: int = 30) -> Result:
    with stack(WORKSTEAD_WORKER__WARM_TOTAL="0") as running:
        ours, theirs = _series(running, running.image("base"), profile_options(), pairs)
    value, base = statistics.median(ours), statistics.median(theirs)
    return Result("start_cold", value, "s", base, median_ratio(ours, theirs), "≤ 1.15", {"pairs": pairs})
