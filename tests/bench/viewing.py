"""``view``: from a person's key to the changed picture at the viewer, and what watching an idle desktop costs."""

import contextlib
import json
import statistics
import subprocess
import time
from typing import Any

from service.sandboxes.docker.cgroup import read_counters
from tests.bench.report import Result, quantile
from tests.bench.resting import cpu_s
from tests.bench.viewer import Viewer
from tests.journeys.jobs import make_task
from tests.journeys.stack import Stack, stack, wait_until

RETURN = 0xFF0D
SCROLLED = 4_000
"""Pixels of a change that moves a full terminal up by a line; a caret has fewer than 200."""
FILL = "n=1; PS1='$((n*7919)) $((n*104729)) $((n++*1299709)) '\n" + "\n" * 40
"""No two lines alike: what looks the same is not sent."""
IDLE_S = 30.0


def view(presses: int = 60) -> Result:
    with stack(WORKSTEAD_WORKER__SLOTS="1", WORKSTEAD_WORKER__WARM_TOTAL="0") as running:
        run_id, lease = _person(running)
        container = _container(running)
        _terminal(running, run_id, lease)
        alone = _share(running, container)
        viewer = Viewer(_url(running, run_id, lease))
        try:
            took = _press(viewer, presses)
            _rest(viewer)
            watched = _share(running, container, viewer)
        finally:
            viewer.close()
        running.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "discard"})
        wait_until("the run is done", lambda: _phase(running, run_id) == "done", 60)
    detail = {
        "p95_s": quantile(took, 0.95),
        "presses": presses,
        "desktop_core_%": watched[0],
        "desktop_core_%_unwatched": alone[0],
        "service_core_%": watched[1],
        "service_core_%_unwatched": alone[1],
    }
    return Result("view", statistics.median(took), "s", goal="≤ 0.06; desktop_core_% ≤ 1", detail=detail)


def _person(running: Stack) -> tuple[str, str]:
    body = {"scaffold": "person@latest", "settings": {"surface": "desktop"}}
    agent = running.call("POST", "/v1/agents", json=body)["id"]
    task = make_task(running, limits={"wall_clock_s": 900, "disk_bytes": 1 << 30})
    run_id = str(running.call("POST", "/v1/runs", json={"task": task, "agent": agent})["id"])
    wait_until("the run works", lambda: _phase(running, run_id) == "running", 120, 0.1)
    return run_id, str(running.call("POST", f"/v1/runs/{run_id}/claim", json={"holder": "bench"})["lease"])


def _terminal(running: Stack, run_id: str, lease: str) -> None:
    """Open a terminal whose lines fill it, so that each further one moves all."""
    headers = {"Workstead-Lease": lease}
    actions: list[dict[str, Any]] = [{"type": "click", "x": 212, "y": 780}]
    for batch in (actions, [{"type": "type", "text": FILL}]):
        body = {"actions": batch, "settle": {"quiet_s": 1.0, "cap_s": 10}, "screenshot": None}
        running.call("POST", f"/v1/runs/{run_id}/desktop/actions", json=body, headers=headers)


def _url(running: Stack, run_id: str, lease: str) -> str:
    headers = {"Workstead-Lease": lease}
    made = running.call("POST", f"/v1/runs/{run_id}/desktop/ticket", json={"control": True}, headers=headers)
    return f"{running.url.replace('http', 'ws', 1)}{made['path']}?ticket={made['ticket']}"


def _press(viewer: Viewer, presses: int) -> list[float]:
    took: list[float] = []
    for turn in range(presses + 5):
        _rest(viewer)
        started = time.perf_counter()
        viewer.press(RETURN)
        while viewer.update(10) < SCROLLED:
            pass
        if turn >= 5:
            took.append(time.perf_counter() - started)
    return took


def _rest(viewer: Viewer) -> None:
    """Take what still comes of the last change."""
    with contextlib.suppress(TimeoutError):
        while True:
            viewer.update(0.15)


def _share(running: Stack, container: tuple[int, str], viewer: Viewer | None = None) -> tuple[float, float]:
    """Return the shares of a core (%) of everything in the container, and of the service."""
    before, started = (_inside(container), cpu_s(running)), time.monotonic()
    while (left := started + IDLE_S - time.monotonic()) > 0:
        if viewer is None:
            time.sleep(left)
            continue
        with contextlib.suppress(TimeoutError):
            viewer.update(left)
    seconds = time.monotonic() - started
    after = (_inside(container), cpu_s(running))
    return (after[0] - before[0]) * 100 / seconds, (after[1] - before[1]) * 100 / seconds


def _inside(container: tuple[int, str]) -> float:
    found = read_counters(*container)
    assert found is not None
    return found.cpu_s


def _container(running: Stack) -> tuple[int, str]:
    (home,) = (running.data_dir / "sandboxes").glob("sbx_*")  # the one run that there is, and no warm ones
    listed = ["docker", "ps", "-q", "--no-trunc", "--filter", f"label=org.workstead.sandbox={home.name}"]
    found = subprocess.run(listed, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    asked = subprocess.run(["docker", "inspect", *found], capture_output=True, text=True, timeout=30, check=True).stdout
    (one,) = json.loads(asked)
    return int(one["State"]["Pid"]), str(one["Id"])


def _phase(running: Stack, run_id: str) -> str:
    return str(running.call("GET", f"/v1/runs/{run_id}")["phase"])
