"""``report``: the JobBench report of 36 agents on 130 tasks with 36 criteria each; ``elo``: 7 agents on 240 projects, 100 draws.

Each in a process of its own, whose peak of memory is told too: libraries, tables and all.
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import polars as pl

from service.domain.benchmarks import Grouping
from service.domain.reports import ReportSettings
from service.reporting.bradley_terry import EloSettings, Preference, bradley_terry
from service.reporting.frames import Tables
from service.reporting.reports.registry import build
from tests.bench.report import Result
from tests.unit.reporting.reports.world import World, header

AGENTS, TASKS, RUBRICS, PARTS = 36, 130, 9, 3
"""Nine rubrics of three criteria: with the rubrics themselves 36 rows a verdict."""
PLAYERS, PROJECTS = 7, 240
MOST_MB = 500


def report() -> Result:
    return _measured("report", f"{AGENTS} agents x {TASKS} tasks x {RUBRICS * (PARTS + 1)} criteria")


def elo() -> Result:
    return _measured("elo", f"{PLAYERS} agents x {PROJECTS} projects, 100 draws")


def _measured(name: str, what: str) -> Result:
    command = [sys.executable, "-m", "tests.bench.reporting", name]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=600)
    found = json.loads(done.stdout)
    assert found["peak_mb"] < MOST_MB, f"{found['peak_mb']:.0f} MB"
    return Result(name, found["took_s"], "s", goal="<= 1 s, <= 500 MB", detail={"what": what, **found})


def verdicts() -> Tables:
    """Return the tables of a whole evaluation, every run graded."""
    drawn = random.Random(0)
    world = World()
    for n in range(AGENTS):
        world.agent(f"agent {n:02}", scaffold=f"s{n % 4}", model=f"m{n // 4}", effort=("low", "high")[n % 2])
    for n in range(TASKS):
        world.task(f"task_{n:03}", {"category": f"c{n % 9}", "occupation": f"o{n % 35}", "split": f"s{n % 2}"})
    criteria: list[tuple[str, str, int, str, bool, float]] = []
    for run in range(AGENTS * TASKS):
        passed = [drawn.random() < 0.5 for _ in range(RUBRICS)]
        agent, task = f"agent {run // TASKS:02}", f"task_{run % TASKS:03}"
        id_ = world.run(agent, task, sum(passed) / RUBRICS, most=90, cost_usd=drawn.random(), wall_s=60.0)
        grading = world.verdict(id_)
        rows = [(f"r{r}", ok, 10.0) for r, ok in enumerate(passed, 1)]
        rows += [(f"r{r}.c{c}", ok or c == 1, 0.0) for r, ok in enumerate(passed, 1) for c in range(1, PARTS + 1)]
        criteria += [(grading, id_, place, name, ok, most) for place, (name, ok, most) in enumerate(rows)]
    tables = dict(world.tables())
    names = ["grading_id", "run_id", "position", "criterion", "passed", "max_score"]
    made = pl.DataFrame(criteria, schema=names, orient="row").with_columns(
        pl.when("passed").then("max_score").otherwise(0.0).alias("score"),
        pl.lit('{"criterion": "text"}').alias("detail"),
    )
    return {**tables, "criteria": made.select(tables["criteria"].columns)}


def _report() -> Callable[[], object]:
    tables = verdicts()
    head = header(groupings=[Grouping(name="category", facet="category", merges={"Others": ["c6", "c7", "c8"]})])
    return lambda: build("jobbench", tables, head, ReportSettings())


def _elo() -> Callable[[], object]:
    drawn = random.Random(0)
    players = [f"agent {n}" for n in range(PLAYERS)]
    pairs = [
        Preference(f"p{p:03}", "human", name, drawn.choices([1.0, 0.5, 0.0], [0.95, 0.03, 0.02])[0])
        for p in range(PROJECTS)
        for name in players
    ]
    pairs += [
        Preference(f"p{p:03}", a, b, drawn.choice([1.0, 0.5, 0.0]))
        for p in range(PROJECTS)
        for n, a in enumerate(players)
        for b in players[n + 1 :]
    ]
    return lambda: bradley_terry(pairs, EloSettings("human"))


def main(name: str) -> None:
    work = {"report": _report, "elo": _elo}[name]()
    began, busy = time.perf_counter(), time.process_time()
    work()
    took, cpu = time.perf_counter() - began, time.process_time() - busy
    began = time.perf_counter()
    work()
    again = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"took_s": took, "cpu_s": cpu, "again_s": again, "peak_mb": round(peak, 1)}))


if __name__ == "__main__":
    main(sys.argv[1])
