"""``workstead eval NAME``, ``run``, ``plan`` and ``start``: draft, estimate, start, watch."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, GRADED, USAGE, emit, err, fail, in_words, labels_of, line
from workstead.cli.eval import options as o
from workstead.cli.eval.estimated import refusals, show_draft
from workstead.cli.eval.service import service
from workstead.cli.eval.watching import follow, go_on
from workstead.cli.eval.words import FILES, agent_choice, facets_of, named, read_spec
from workstead.cli.options import Json, Yes
from workstead.cli.watch import note
from workstead.config import Connection
from workstead.errors import Invalid
from workstead.models_evaluations import Evaluation
from workstead.terminal import safe

Benchmark = Annotated[str, typer.Argument(help="NAME[@VERSION] of a benchmark that was imported", show_default=False)]
Which = Annotated[str, typer.Argument(help="NAME[@VERSION] of a benchmark, or a YAML or JSON file", show_default=False)]


@dataclass(frozen=True, slots=True)
class How:
    """How far to go, and how it is shown."""

    dry_run: bool = False
    skip_preflight: bool = False
    yes: bool = False
    as_json: bool = False
    detach: bool = False


@in_words
def benchmark(
    name: Benchmark,
    agent: o.Agents = None,
    samples: o.Samples = 1,
    limit: o.Most = None,
    include: o.Include = None,
    exclude: o.Exclude = None,
    facet: o.Facet = None,
    plan: o.Plan = None,
    budget: o.Budget = None,
    judges_budget: o.JudgesBudget = None,
    order: o.OrderOf = "breadth",
    seed: o.Seed = 0,
    title: o.Name = None,
    label: o.Labels = None,
    dry_run: o.DryRun = False,
    skip_preflight: o.Skip = False,
    detach: o.Detach = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Evaluate agents on a benchmark: estimate, ask, try everything out, run, and wait for the verdicts."""
    spec = _spec(name, agent, title, label) | {"samples": samples, "order": order, "seed": seed}
    spec["tasks"] = _selection(include, exclude, facet, limit)
    spec |= {} if plan is None else {"plan": plan}
    spec["budget"] = {k: _usd(v) for k, v in (("agents_usd", budget), ("judges_usd", judges_budget)) if v is not None}
    _evaluate(spec, How(dry_run, skip_preflight, yes, as_json, detach))


@in_words
def run_file(
    file: o.Spec,
    dry_run: o.DryRun = False,
    skip_preflight: o.Skip = False,
    detach: o.Detach = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Evaluate as a file says."""
    _evaluate(read_spec(file), How(dry_run, skip_preflight, yes, as_json, detach))


@in_words
def plan(
    which: Which,
    agent: o.Agents = None,
    samples: o.Samples = 1,
    limit: o.Most = None,
    include: o.Include = None,
    exclude: o.Exclude = None,
    facet: o.Facet = None,
    seed: o.Seed = 0,
    title: o.Name = None,
    label: o.Labels = None,
    as_json: Json = False,
) -> None:
    """Make a draft and print what it means and may take; `start` starts it."""
    if which.endswith(FILES) and Path(which).is_file():
        spec = read_spec(Path(which))
    else:
        spec = _spec(which, agent, title, label) | {"samples": samples, "seed": seed}
        spec["tasks"] = _selection(include, exclude, facet, limit)
    with service(begins=True) as there:
        drafted = asyncio.run(_drafted(there, spec))
    emit(drafted) if as_json else show_draft(drafted)


@in_words
def start(
    evaluation: o.Id,
    skip_preflight: o.Skip = False,
    detach: o.Detach = False,
    as_json: Json = False,
) -> None:
    """Start a draft as it is now, and watch it."""
    how = How(skip_preflight=skip_preflight, as_json=as_json, detach=detach)
    with service() as there:
        code = asyncio.run(_start_known(there, evaluation, how))
    raise typer.Exit(code)


def _spec(benchmark: str, agents: list[str] | None, title: str | None, labels: list[str] | None) -> dict[str, Any]:
    if not agents:
        raise fail("name an agent: -a SCAFFOLD:MODEL@EFFORT, or the label of one that exists", USAGE)
    return {
        "name": title or named(benchmark),
        "benchmark": benchmark,
        "agents": [agent_choice(word) for word in agents],
        "labels": labels_of(labels),
    }


def _selection(
    include: list[str] | None, exclude: list[str] | None, facet: list[str] | None, limit: int | None
) -> dict[str, Any]:
    said = {"include": include, "exclude": exclude, "facets": facets_of(facet), "limit": limit}
    return {name: value for name, value in said.items() if value}


def _usd(dollars: float) -> str:
    return f"{dollars:.6f}"


def _evaluate(spec: Mapping[str, Any], how: How) -> None:
    with service(begins=True) as there:
        code = asyncio.run(_begin(there, spec, how))
    raise typer.Exit(code)


async def _drafted(there: Connection, spec: Mapping[str, Any]) -> Evaluation:
    async with AsyncClient(there.url, there.token) as client:
        return await _draft(client, spec)


async def _draft(client: AsyncClient, spec: Mapping[str, Any]) -> Evaluation:
    async with words_of_refusal():
        return await client.evaluations.create(spec)


@asynccontextmanager
async def words_of_refusal() -> AsyncGenerator[None]:
    """Print what the service says of each agent and task, besides that it refuses."""
    try:
        yield
    except Invalid as problem:
        for said in refusals(problem.fields):
            err.print(Text(safe(said), style="red"))
        raise


async def _begin(there: Connection, spec: Mapping[str, Any], how: How) -> int:
    async with AsyncClient(there.url, there.token) as client:
        drafted = await _draft(client, spec)
        if how.dry_run:
            await client.evaluations.delete(drafted.id)
            emit(drafted) if how.as_json else show_draft(drafted)
            return GRADED
        if not how.as_json:
            show_draft(drafted)
        if not how.yes and not _wanted():
            await client.evaluations.delete(drafted.id)
            note(f"{drafted.id} was deleted; nothing ran")
            return FAILED
        return await _start(client, drafted, how)


def _wanted() -> bool:
    try:
        return typer.confirm("Start it?", err=True)
    except typer.Abort:  # nobody is there to ask, or Ctrl-C
        return False


async def _start_known(there: Connection, evaluation_id: str, how: How) -> int:
    async with AsyncClient(there.url, there.token) as client:
        return await _start(client, await client.evaluations.get(evaluation_id), how)


async def _start(client: AsyncClient, drafted: Evaluation, how: How) -> int:
    await client.evaluations.start(drafted.id, drafted.revision, skip_preflight=how.skip_preflight)
    if how.detach:
        emit(await client.evaluations.get(drafted.id)) if how.as_json else line(drafted.id)
        note(go_on(drafted.id))
        return GRADED
    return await follow(client, drafted.id, as_json=how.as_json)
