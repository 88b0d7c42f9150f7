"""``desktop_runs``: the price list on the screen, twenty runs per wire format and by a loop outside. Nothing is retried."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from demo.desktop.check import EXPECTED
from demo.desktop.scripts import PRICE_UPDATE
from tests.bench.report import Result
from tests.journeys.models import Lab, lab
from tests.journeys.test_desktop import (
    VOCABULARIES,
    artifact,
    cells_of,
    drive,
    price_task,
    remote_agent,
    start,
    submit,
)

RUNS = 20
AT_ONCE = 3
REMOTE = "remote loop"


def desktop_runs(runs: int = RUNS) -> Result:
    ways = [*VOCABULARIES, REMOTE]
    with lab(WORKSTEAD_WORKER__SLOTS=str(AT_ONCE)) as screens, ThreadPoolExecutor(AT_ONCE) as pool:
        task, agent = price_task(screens.stack), remote_agent(screens.stack)
        jobs = [(way, pool.submit(_once, screens, way, task, agent)) for _ in range(runs) for way in ways]
        done = [(way, job.result()) for way, job in jobs]
    good = Counter(way for way, wall_s in done if wall_s is not None)
    walls = sorted(wall_s for _, wall_s in done if wall_s is not None) or [0.0]
    detail = {"of": runs, "succeeded": dict(good), "median_wall_s": walls[len(walls) // 2], "longest_wall_s": walls[-1]}
    return Result(
        "desktop_runs", 100 * good.total() / len(done), "% of runs", goal=f"{runs} of {runs} each", detail=detail
    )


def _once(screens: Lab, way: str, task: str, agent: str) -> float | None:
    """Return the seconds of a run that did the work at its first attempt; null: it did not."""
    try:
        run_id = _outside(screens, task, agent) if way == REMOTE else start(screens, way, task, PRICE_UPDATE)
        run = screens.stack.wait_run(run_id, 600)
        if run["ended_because"] != "completed" or run["attempt"] != 1:
            return None
        right = cells_of(artifact(screens.stack, run_id, "output/result.xlsx")) == EXPECTED
    except (AssertionError, TimeoutError) as error:
        print(f"{way}: {error}")
        return None
    return float(run["wall_s"]) if right else None


def _outside(screens: Lab, task: str, agent: str) -> str:
    run_id = submit(screens.stack, task, agent)
    drive(screens.stack, run_id, PRICE_UPDATE)
    return run_id
