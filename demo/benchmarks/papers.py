"""From each benchmark's folder to its report: ``python -m demo.benchmarks.papers [NAME…] [-o FOLDER]``.

Imports the synthetic set, runs solvers of several qualities in real sandboxes, has scripted judges, raters and forecasters decide,
and writes report, figures and an export whose figures its own ``verify.py`` then computes again. Needs no key. ``--slice``: a task
or a few of each, and the first table of its report.
"""

import argparse
import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from demo.benchmarks.make import make
from demo.benchmarks.rating import rate
from workstead.aio import AsyncClient
from workstead.cli.common import line
from workstead.cli.demo import DemoFailed, new_folder, service
from workstead.cli.demo_model import scripted_models
from workstead.cli.eval.reported import show_table
from workstead.cli.run import agent_of
from workstead.config import Connection
from workstead.errors import WorksteadError
from workstead.importers.contract import ImportOptions
from workstead.importers.registry import importer_for
from workstead.models import Benchmark
from workstead.models_evaluations import Evaluation

SMALL = {"memory_bytes": "268435456", "disk_bytes": "67108864", "cpus": "1", "wall_clock_s": "120"}
"""So that several runs fit beside each other on a small machine; the limits are in the report."""
SEED = 7
"""Of the tasks that are drawn, for forecasts and runs alike, and of every interval."""
SECONDS = 900.0
"""Of one paper."""
DEFAULT = "payworthy-judge"
"""Scenario of the provider for whoever shows no key of its own."""


@dataclass(frozen=True, slots=True)
class Paper:
    source: str
    """Below the folder of sets."""
    scaffolds: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the importer; ``{sets}`` is the folder of sets."""
    models: tuple[str, ...] = ()
    """Scenarios that become models of the catalogue, as ``scripted/<scenario>``."""
    forecasters: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    """Scenarios whose models answer as agents of one request each."""
    people: bool = False
    """People rate the work; it waits for them."""
    limit: int | None = None
    """Tasks, drawn by the seed."""
    few: Mapping[str, Any] = field(default_factory=lambda: {"limit": 1})
    """Which tasks a slice has: ones that the solvers' qualities differ in."""


PAPERS = {
    "jobbench": Paper(
        "jobbench",
        ("desk-right", "desk-partial", "desk-wrong"),
        {
            "judge": "scripted/jobbench-judge",
            "categories": "{sets}/jobbench/categories.json",
            "environment": "workbench",
        },
        ("jobbench-judge",),
        limit=4,
        few={"include": ["*statisticians*"]},
    ),
    "rli": Paper(
        "rli",
        ("works-right", "works-partial", "works-hostile"),
        {"people": "yes", "environment": "workbench"},
        ("rli-worker",),
        workers=("rli-worker",),
        people=True,
        few={"include": ["public_903", "public_905"]},
    ),
    "payworthy": Paper(
        "payworthy",
        ("works-right", "works-partial"),
        {"judge": "scripted/payworthy-judge,scripted/payworthy-strict", "environment": "workbench"},
        ("payworthy-judge", "payworthy-strict", "forecaster-sharp", "forecaster-blunt"),
        ("forecaster-sharp", "forecaster-blunt"),
        limit=8,
        few={"limit": 3},
    ),
    "freelance": Paper(
        "freelance/shape_b.json",
        ("freelance-right", "freelance-wrong"),
        {"disputed": "{sets}/freelance/disputed.json", "environment": "workbench"},
        few={"disputed": False},
    ),
}


@dataclass(slots=True)
class Showing:
    """One paper with a service."""

    client: AsyncClient
    url: str
    sets: Path
    folder: Path
    name: str
    paper: Paper
    sliced: bool = False

    async def show(self) -> None:
        """Raises DemoFailed, WorksteadError."""
        benchmark = await self._bring()
        agents = [await agent_of(self.client, self.sets / f"scaffolds/{name}.json") for name in self.paper.scaffolds]
        agents += [
            (await self.client.agents.create("single-response@latest", model=f"scripted/{name}")).id
            for name in self.paper.workers
        ]
        await self._forecast(benchmark, agents[0])
        evaluation = await self._evaluate(benchmark, agents)
        if self.sliced:
            report = await self.client.reports.of(evaluation.id)
            show_table(report.tables[0])
        else:
            await self._hand_over(evaluation)

    async def _bring(self) -> Benchmark:
        importer = importer_for(self.name)
        assert importer is not None
        options = {**SMALL, **{k: v.format(sets=self.sets) for k, v in self.paper.options.items()}}
        with importer.read(self.sets / self.paper.source, ImportOptions(settings=options)) as found:
            made = await self.client.benchmarks.create(found.manifest, found.files)
        counts = ", ".join(f"{made.counts.get(s, 0)} {s}" for s in ("ok", "disputed", "quarantined"))
        line(f"{self.name}: imported as {made.name}@{made.version}: {counts}")
        return made

    async def _forecast(self, benchmark: Benchmark, agent: str) -> None:
        """Ask for forecasts before anybody works."""
        if not self.paper.forecasters:
            return
        wish = {
            "name": f"{self.name} beforehand", "benchmark": benchmark.id, "tasks": self._tasks(), "seed": SEED,
            "about": {"agent": agent}, "forecasters": [{"model": f"scripted/{m}"} for m in self.paper.forecasters],
        }  # fmt: skip
        drafted = await self.client.forecasts.create(wish)
        started = await self.client.forecasts.start(drafted.id)
        assert started.operation_id is not None
        await self.client.operations.wait(started.operation_id)
        made = await self.client.forecasts.get(drafted.id)
        line(f"{self.name}: {made.ok} of {made.total} forecasts, {made.excluded} excluded")
        if made.failed or made.ok == 0:
            raise DemoFailed(f"{self.name}: {made.failed} forecasts failed: {made.stopped_because}")

    async def _evaluate(self, benchmark: Benchmark, agents: Sequence[str]) -> Evaluation:
        spec = {
            "name": f"{self.name} on the synthetic set", "benchmark": benchmark.id, "tasks": self._tasks(),
            "agents": [{"agent": agent} for agent in agents], "seed": SEED,
        }  # fmt: skip
        draft = await self.client.evaluations.create(spec)
        started = await self.client.evaluations.start(draft.id, draft.revision, skip_preflight=True)
        line(f"{self.name}: {started.total} runs of {len(agents)} agents")
        async with asyncio.timeout(SECONDS):
            if self.paper.people:
                await self._rate(draft.id, agents)
            ended = await self.client.evaluations.wait(draft.id)
        outcomes = ended.counts.get("outcome", {})
        # Two judges who do not agree abstain: that is decided.
        if outcomes.get("graded", 0) + outcomes.get("abstained", 0) < ended.total:
            raise DemoFailed(f"{self.name}: not all of {ended.total} runs are decided: {ended.counts}")
        return ended

    async def _rate(self, evaluation: str, agents: Sequence[str]) -> None:
        """Have people decide once all work is delivered."""
        await self.client.evaluations.wait(evaluation, until=lambda e: e.of_phase("grading", "done") == e.total)
        done = await rate(self.client, self.url, evaluation, agents, self.name)
        line(f"{self.name}: {done['human_panel']} ratings against the reference, {done['pairwise']} of pairs")

    def _tasks(self) -> dict[str, Any]:
        if self.sliced:
            return {**self.paper.few}
        return {} if self.paper.limit is None else {"limit": self.paper.limit}

    async def _hand_over(self, evaluation: Evaluation) -> None:
        report = await self.client.reports.of(evaluation.id)
        if report.kind != self.name:
            raise DemoFailed(f"{self.name}: the report is of kind {report.kind}")
        for table in report.tables:
            line(f"{self.name}: {table.name}: {len(table.rows)} rows, n = {table.n} {table.unit}")
        operation = await self.client.exports.create([evaluation.id])
        ended = await self.client.operations.wait(operation.id)
        if ended.state != "succeeded":
            raise DemoFailed(f"{self.name}: the export {ended.state}: {ended.problem}")
        target = self.folder / self.name
        await self.client.exports.download(operation.id, self.folder / f"{self.name}.zip")
        with zipfile.ZipFile(self.folder / f"{self.name}.zip") as packed:
            for member in packed.namelist():  # our own service's, written a moment ago
                packed.extract(member, target)
        _verify(self.name, target)


def _verify(name: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "verify.py")], capture_output=True, text=True, timeout=300, check=False
    )
    (folder / "verified.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode != 0:
        raise DemoFailed(f"{name}: verify.py does not agree:\n{(done.stdout + done.stderr)[-2000:]}")
    line(f"{name}: {done.stdout.strip().splitlines()[-1]}; report: {folder / 'report/report.html'}", "green")


async def _all(
    there: Connection, provider: str, sets: Path, folder: Path, names: Sequence[str], *, sliced: bool
) -> None:
    async with AsyncClient(there.url, there.token) as client:
        for scenario in dict.fromkeys(s for name in names for s in PAPERS[name].models):
            spec = {
                "name": f"scripted/{scenario}", "provider": "scripted", "upstream_id": scenario, "dialect": "openai",
                "base_url": f"{provider}/v1", "modalities": ["text", "image"], "released_on": "2026-09-01",
                "prices": {"input_usd": "1", "cache_write_usd": "1.25", "output_usd": "4", "as_of": "2026-11-01"},
            }  # fmt: skip
            model = await client.models.create(spec)
            await client.models.put_credential(model.id, f"sk-scripted-{scenario}")
        for name in names:
            paper = PAPERS[name]
            shown = replace(paper, scaffolds=paper.scaffolds[:2]) if sliced else paper
            await Showing(client, there.url, sets, folder, name, shown, sliced).show()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="From each benchmark's folder to its report.")
    parser.add_argument("names", nargs="*", choices=[*PAPERS, []], help="default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path("papers_output"))
    parser.add_argument("--slice", action="store_true", help="a task or a few of each, and its first table")
    parser.add_argument("--attach", action="store_true", help="use the running service instead of starting one")
    asked = parser.parse_args(arguments)
    names = asked.names or [*PAPERS]
    folder = new_folder(asked.output)
    sets = make(folder / "sets")
    scenarios = (sets / "models.toml").read_text(encoding="utf-8")
    try:
        with (
            service(attach=asked.attach, folder=folder) as there,
            scripted_models(scenarios, folder, scenario=DEFAULT) as provider,
        ):
            asyncio.run(_all(there, provider, sets, folder, names, sliced=asked.slice))
    except WorksteadError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
