"""``benchmarks check``: is each item sound? (NEEDS A6) What can be read is read, what can be run is run."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from workstead.aio import AsyncClient
from workstead.cli.checking_inputs import check_inputs
from workstead.cli.checking_report import Finding
from workstead.cli.watch import Show, note, watch
from workstead.errors import Invalid
from workstead.models import BenchmarkItem, Run
from workstead.named_paths import missing_paths
from workstead.task_dir import Bundle

LABEL = "benchmark_check"
CHUNK = 1_000
PEOPLE = "human_panel"
"""The grading method whose verdicts take days."""
SCAFFOLDS = {kind: Bundle({"name": f"check-{kind}", "version": "1", "kind": kind}) for kind in ("oracle", "nop")}


@dataclass(frozen=True, slots=True)
class CheckOrder:
    ref: str
    include: Sequence[str] = ()
    inputs: bool = True
    show: Show = "auto"


@dataclass(slots=True)
class Checked:
    """An item and what was found so far."""

    key: str
    task_id: str
    has_grader: bool
    has_files: bool
    found: Finding


async def check_benchmark(order: CheckOrder) -> dict[str, dict[str, Any]]:
    """Check every item that has a task and is not quarantined, store what was found, and return it by key.

    Raises NotFound, Problem, Disconnected.
    """
    async with AsyncClient() as client:
        benchmark = await client.benchmarks.find(order.ref)
        items = [checked async for checked in _items(client, benchmark.id, order.include)]
        await _run(client, benchmark.id, items, order.show)
        if order.inputs:
            inputs = [(c.task_id, c.found) for c in items if c.has_files]
            await check_inputs(client, inputs, {LABEL: benchmark.id}, order.show)
        checks = {checked.key: checked.found.as_check() for checked in items}
        for keys in _chunks(list(checks)):
            await client.benchmarks.set_checks(benchmark.id, {key: checks[key] for key in keys})
        return checks


async def _items(client: AsyncClient, benchmark_id: str, include: Sequence[str]) -> AsyncIterator[Checked]:
    """Yield the wanted items, each read. The manifests of a large benchmark pass by and are not kept."""
    wanted: dict[str, list[BenchmarkItem]] = {}
    async for item in client.benchmarks.items(benchmark_id, {"status": ["ok", "disputed"]}):
        if item.task is not None and (not include or any(fnmatchcase(item.key, glob) for glob in include)):
            wanted.setdefault(item.task.id, []).append(item)
    if wanted:
        async for task in client.tasks.list({"benchmark_id": benchmark_id}):
            for item in wanted.get(task.id, ()):
                yield read(item, task.id, task.manifest or {})


def read(item: BenchmarkItem, task_id: str, manifest: Mapping[str, Any]) -> Checked:
    """Note what the item and its task's manifest alone tell."""
    found = Finding()
    for problem in item.problems:
        if problem.get("type") == "named_file_missing":
            found.suspicions.append(str(problem.get("detail")))
    for name in missing_paths(manifest):
        found.suspicions.append(f"the instruction names /workspace/{name}, which is not there")
    methods = [grader.get("method") for grader in manifest.get("graders", [])]
    runnable = bool(methods) and PEOPLE not in methods
    if not methods:
        found.remarks.append("the task has no grader, so that nothing can be run against it")
    elif not runnable:
        found.remarks.append("people grade it, and a check does not wait for them: nothing was run against it")
    return Checked(item.key, task_id, runnable, bool(manifest.get("visible")), found)


async def _run(client: AsyncClient, benchmark_id: str, items: Sequence[Checked], show: Show) -> None:
    """Run oracle and nop on what has a grader."""
    graded = [checked for checked in items if checked.has_grader]
    agents = {kind: await _agent(client, kind) for kind in SCAFFOLDS} if graded else {}
    started: dict[str, tuple[str, Finding]] = {}
    runs: list[Run] = []
    for kind, agent in agents.items():
        for checked in graded:
            try:
                run = await client.runs.create(checked.task_id, agent, labels={LABEL: benchmark_id})
            except Invalid as problem:
                refused(problem, checked.found)
                continue
            started[run.id] = (kind, checked.found)
            runs.append(run)
    note(f"{len(runs)} runs check {len(items)} items")
    for run in await watch(client, runs, show=show):
        kind, found = started[run.id]
        if kind == "oracle":
            found.oracle_ended(run)
        else:
            found.nop_ended(run)


def refused(problem: Invalid, found: Finding) -> None:
    """Note why a run of an item was refused; only a missing reference solution is no reason to doubt it."""
    if problem.type == "no_reference_solution":
        found.remarks.append("the task has no reference solution, so that the oracle is not applicable")
    else:
        found.suspicions.append(f"it cannot be run: {problem}")


async def _agent(client: AsyncClient, kind: str) -> str:
    return (await client.agents.create((await client.scaffolds.register(SCAFFOLDS[kind])).ref)).id


def _chunks(keys: list[str]) -> Iterator[list[str]]:
    yield from (keys[i : i + CHUNK] for i in range(0, len(keys), CHUNK))
