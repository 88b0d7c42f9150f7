"""``workstead grade controls``: deliverables made worse on purpose, to see whether graders notice."""

import asyncio
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import GRADED, UNGRADED, emit, fail, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.run_filters import as_choice, run_query
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models_controls import Controls, ControlsOfKind, ControlsSide

KINDS = ("quarter", "other_task", "empty")
SUCCEEDED = "succeeded"

Run = Annotated[list[str] | None, typer.Argument(help="Runs, in place of filters", show_default=False)]
Agent = Annotated[list[str] | None, typer.Option(help="Of this agent: label or id; repeatable")]
Task = Annotated[list[str] | None, typer.Option(help="Of this task: name or id; repeatable")]
Label = Annotated[list[str] | None, typer.Option(help="Of runs with this label, key=value; repeatable")]
Where = Annotated[list[str] | None, typer.Option("--on", help="Any filter of the run list, name=value; repeatable")]
Kind = Annotated[
    list[str] | None,
    typer.Option("--kind", help="quarter, other_task, empty, weaker; repeatable; default: all that can be made"),
]
Weaker = Annotated[str | None, typer.Option(help="The weaker agent of kind `weaker`: label or id")]
Plan = Annotated[str | None, typer.Option(help="Grading plan of both sides; default: the runs' own")]
Seed = Annotated[int, typer.Option(min=0, help="The same kind, run and seed is made once")]
Facet = Annotated[str, typer.Option(help="Of the task: what `other_task` has in common with it")]
From = Annotated[float, typer.Option("--accepted-from", min=0.01, max=1, help="Least share of the points that accepts")]
Detach = Annotated[bool, typer.Option("--detach", help="Do not wait for the verdicts")]


@in_words
def controls(
    runs: Run = None,
    agent: Agent = None,
    task: Task = None,
    label: Label = None,
    where: Where = None,
    kind: Kind = None,
    weaker: Weaker = None,
    plan: Plan = None,
    seed: Seed = 0,
    facet: Facet = "category",
    accepted_from: From = 1.0,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Make altered-work controls of runs, have them graded, and compare. Exit code 3: a control or original has no score.

    quarter: the first quarter of the run's own work; other_task: another task's deliverable of the same category; empty:
    nothing; weaker: a weaker agent's deliverable for the same task.
    """
    kinds = kind or [*KINDS, *(["weaker"] if weaker else [])]
    wish: dict[str, Any] = {"kinds": kinds, "weaker": weaker, "plan": plan, "seed": seed, "facet": facet}
    wish["accepted_from"] = accepted_from
    filters = {"agent": agent, "task": task, "label": label, "where": where}
    found = asyncio.run(_made(runs, filters, wish, detach))
    emit(found) if as_json else show(found)
    raise typer.Exit(GRADED if detach or not any(one.excluded for one in found.kinds) else UNGRADED)


async def _made(runs: list[str] | None, filters: dict[str, Any], wish: dict[str, Any], detach: bool) -> Controls:
    async with AsyncClient() as client:
        meant = {"runs": runs} if runs else {"filter": as_choice(await run_query(client, **filters))}
        operation = await client.controls.create({**wish, **meant})
        ended = await client.operations.wait(
            operation.id, lambda o: note(f"{o.id}: {o.done}/{o.total or '?'} {o.unit}")
        )
        if ended.state != SUCCEEDED:
            raise fail(f"{ended.id}: {ended.state}; `workstead operations show {ended.id}` says more")
        note(f"{ended.id}: made")
        return await (client.controls.get if detach else client.controls.wait)(operation.id)


def show(found: Controls) -> None:
    head = ("kind", "controls", "pairs", "originals accepted", "controls accepted", "difference", "95 %", "not counted")
    out.print(plain_table(head, map(_row, found.kinds)))
    for one in found.kinds:
        none = {reason: n for reason, n in one.outcomes.items() if reason not in ("made", "found")}
        if none:
            line(f"{one.kind}: none of {', '.join(f'{n} runs ({reason})' for reason, n in none.items())}")


def _row(one: ControlsOfKind) -> tuple[object, ...]:
    mean, interval = one.difference.mean, one.difference.interval
    spread = None if interval is None else f"{interval[0]:+.2f} … {interval[1]:+.2f}"
    excluded = ", ".join(f"{n} {reason}" for reason, n in one.excluded.items())
    change = None if mean is None else f"{mean:+.2f}"
    return one.kind, one.controls, one.pairs, _side(one.originals), _side(one.altered), change, spread, excluded


def _side(side: ControlsSide) -> str | None:
    return None if side.acceptance is None else f"{side.accepted} of {side.n} ({side.acceptance:.0%})"
