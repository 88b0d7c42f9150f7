"""``desktop_runs``: the price list on the screen, twenty runs per wire format and by a loop outside. Nothing is retried."""

from collections.abc import Callable

from demo.desktop.scripts import PRICE_UPDATE
from tests.bench.report import Result
from tests.journeys.models import Lab, lab
from tests.journeys.test_desktop import (
    EACH_PROVIDER,
    UPDATED,
    artifact,
    cells,
    drive,
    price_task,
    remote_agent,
    start,
    submit,
)

RUNS = 20
AT_ONCE = 2
REMOTE = "remote loop"


def desktop_runs(runs: int = RUNS) -> Result:
    done: dict[str, int] = {}
    walls: list[float] = []
    with lab(WORKSTEAD_WORKER__SLOTS=str(AT_ONCE)) as screens:
        task = price_task(screens.stack)
        for vocabulary in EACH_PROVIDER:
            ids = [_loop(screens, vocabulary, task) for _ in range(runs)]
            done[vocabulary] = sum(_good(screens, run_id, walls) for run_id in ids)
        agent = remote_agent(screens.stack)
        outside = [_outside(screens, lambda: submit(screens.stack, task, agent)) for _ in range(runs)]
        done[REMOTE] = sum(_good(screens, run_id, walls) for run_id in outside)
    total = runs * len(done)
    value = 100 * sum(done.values()) / total
    detail = {"of": runs, "succeeded": done, "median_wall_s": sorted(walls)[len(walls) // 2]}
    return Result("desktop_runs", value, "% of runs", goal=f"{runs} of {runs} each", detail=detail)


def _loop(screens: Lab, vocabulary: str, task: str) -> str:
    return start(screens, vocabulary, task, PRICE_UPDATE)


def _outside(screens: Lab, make: Callable[[], str]) -> str:
    run_id = make()
    drive(screens.stack, run_id, PRICE_UPDATE)
    return run_id


def _good(screens: Lab, run_id: str, walls: list[float]) -> bool:
    run = screens.stack.wait_run(run_id, 1200)
    if run["ended_because"] != "completed" or run["attempt"] != 1:
        return False
    walls.append(float(run["wall_s"]))
    return cells(artifact(screens.stack, run_id, "output/result.xlsx")) == UPDATED
