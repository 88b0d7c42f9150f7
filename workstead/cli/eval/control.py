"""``workstead eval set``, ``hold``, ``release``, ``resume``, ``stop``, ``retry``, ``add-agent`` and ``invalidate``."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import GRADED, emit, facts, in_words, line
from workstead.cli.eval import options as o
from workstead.cli.eval.begin import words_of_refusal
from workstead.cli.eval.service import service
from workstead.cli.eval.watching import follow, go_on, summary
from workstead.cli.eval.words import SECTIONS, agent_choice, changes
from workstead.cli.options import Json, LabelIs, OfTask, Outcome, Where, Yes
from workstead.cli.run_filters import as_choice, run_query
from workstead.cli.watch import note
from workstead.config import Connection
from workstead.models_evaluations import Evaluation

Pairs = Annotated[
    list[str],
    typer.Argument(
        help="priority=5 budget.agents_usd=20 concurrency.total=8 concurrency.models.NAME=2 stop_rules.enabled=false "
        "labels.KEY=VALUE name=… notes=…; an empty value takes a limit away",
        show_default=False,
    ),
]
Mode = Annotated[str, typer.Option(help="finish, collect or discard what runs; queued: only what has not begun")]
Because = Annotated[list[str] | None, typer.Option("--because", help="ended_because of runs to redo; repeatable")]
Outcomes = Annotated[list[str] | None, typer.Option("--outcome", help="Outcome of runs to redo; repeatable")]
NewAgents = Annotated[list[str], typer.Argument(help="SCAFFOLD:MODEL@EFFORT, or labels or ids", show_default=False)]
Why = Annotated[str, typer.Option("--reason", help="Why; everybody who sees the run sees it", show_default=False)]
Dry = Annotated[bool, typer.Option("--dry-run", help="Only say how many")]
Everything = Annotated[bool, typer.Option("--all", help="Every hold: of the whole and of each agent")]
OfAgents = Annotated[list[str] | None, typer.Option("--agent", "-a", help="Only runs of this agent; repeatable")]
Act = Callable[[AsyncClient], Awaitable[Evaluation]]


@in_words
def set_(evaluation: o.Id, pairs: Pairs, as_json: Json = False) -> None:
    """Change an evaluation while it goes on; each change is in its log with who made it."""

    async def act(client: AsyncClient) -> Evaluation:
        found = await client.evaluations.get(evaluation)
        now = {name: getattr(found, name) for name in SECTIONS}
        return await client.evaluations.change(evaluation, **changes(pairs, now))

    _done(act, as_json)


@in_words
def hold(
    evaluation: o.Id, agent: o.OfAgent = None, model: o.OfModel = None, reason: o.Reason = "", as_json: Json = False
) -> None:
    """Let nothing more begin, of all, of an agent or of a model; what runs goes on."""
    _done(lambda c: c.evaluations.hold(evaluation, agent=agent, model=model, reason=reason), as_json)


@in_words
def release(
    evaluation: o.Id, agent: o.OfAgent = None, model: o.OfModel = None, all_: Everything = False, as_json: Json = False
) -> None:
    """Take a hold away, a person's or a stop rule's: that of the whole, an agent's, or --all."""

    async def act(client: AsyncClient) -> Evaluation:
        found = await client.evaluations.release(evaluation, agent=agent, model=model)
        for held in [one for one in found.agents if one.hold] if all_ else ():
            found = await client.evaluations.release(evaluation, agent=held.id)
        return found

    if all_ and (agent or model):
        raise typer.BadParameter("--all is every hold there is: leave --agent and --model out")
    _done(act, as_json)


@in_words
def stop(evaluation: o.Id, mode: Mode = "collect", as_json: Json = False) -> None:
    """End it; `resume` makes what is missing."""
    _done(lambda c: c.evaluations.stop(evaluation, mode), as_json)


@in_words
def resume(evaluation: o.Id, detach: o.Detach = False, as_json: Json = False) -> None:
    """Make the runs that are missing, and watch."""
    _goes_on(evaluation, lambda c: c.evaluations.resume(evaluation), detach, as_json)


@in_words
def retry(
    evaluation: o.Id, because: Because = None, outcome: Outcomes = None, detach: o.Detach = False, as_json: Json = False
) -> None:
    """Redo the runs that ended so, and watch; the former ones stay visible as invalidated."""
    if not because and not outcome:
        raise typer.BadParameter("say which: --because CAUSE or --outcome OUTCOME")
    causes, outcomes = because or [], outcome or []
    _goes_on(evaluation, lambda c: c.evaluations.retry(evaluation, because=causes, outcomes=outcomes), detach, as_json)


@in_words
def add_agent(evaluation: o.Id, agents: NewAgents, detach: o.Detach = False, as_json: Json = False) -> None:
    """Add agents; only their runs are made. Then watch."""
    choices = [agent_choice(word) for word in agents]

    async def act(client: AsyncClient) -> Evaluation:
        async with words_of_refusal():
            return await client.evaluations.add_agents(evaluation, choices)

    _goes_on(evaluation, act, detach, as_json)


@in_words
def invalidate(
    evaluation: o.Id,
    reason: Why,
    agent: OfAgents = None,
    task: OfTask = None,
    outcome: Outcome = None,
    label: LabelIs = None,
    where: Where = None,
    dry_run: Dry = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take runs out of every table: they stay visible, and `resume` redoes them."""
    filters = {"agent": agent, "task": task, "outcome": outcome, "label": label, "where": where}
    with service() as there:
        found = asyncio.run(_invalidated(there, evaluation, filters, reason, ask=not yes, dry_run=dry_run))
    emit(found) if as_json else facts(found)


async def _invalidated(
    there: Connection, evaluation: str, filters: dict[str, Any], reason: str, *, ask: bool, dry_run: bool
) -> dict[str, Any]:
    async with AsyncClient(there.url, there.token) as client:
        chosen = {**as_choice(await run_query(client, **filters)), "evaluation_id": [evaluation]}
        found = await client.many_runs.invalidate(chosen, reason, dry_run=True)
        if dry_run:
            return found
        if ask:
            typer.confirm(f"Invalidate {found.get('runs', found.get('n'))} runs?", err=True, abort=True)
        return await client.many_runs.invalidate(chosen, reason)


def _done(act: Act, as_json: bool) -> None:
    with service() as there:
        found = asyncio.run(_acted(there, act))
    emit(found) if as_json else line(f"{found.id}: {summary(found)}")


async def _acted(there: Connection, act: Act) -> Evaluation:
    async with AsyncClient(there.url, there.token) as client:
        return await act(client)


def _goes_on(evaluation: str, act: Act, detach: bool, as_json: bool) -> None:
    with service() as there:
        code = asyncio.run(_followed(there, evaluation, act, detach, as_json))
    raise typer.Exit(code)


async def _followed(there: Connection, evaluation: str, act: Act, detach: bool, as_json: bool) -> int:
    async with AsyncClient(there.url, there.token) as client:
        found = await act(client)
        if detach:
            emit(found) if as_json else line(f"{found.id}: {summary(found)}")
            note(go_on(evaluation))
            return GRADED
        return await follow(client, evaluation, as_json=as_json)
