"""``workstead forecasts …``: what models say beforehand of an agent's work."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.common import FAILED, emit, facts, in_words, labels_of, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.surveys import cost_words, json_lines, model_spec, state_words, wait
from workstead.cli.tables import plain_table
from workstead.models_forecasts import ForecastSet
from workstead.sync import Client

forecasts_app = typer.Typer(help="What models say beforehand of an agent's work.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the set", show_default=False)]
SetId = Annotated[str, typer.Argument(help="Forecast set, as listed", show_default=False)]
Benchmark = Annotated[str | None, typer.Option(help="Id, name@version, or a name: its newest version")]
Task = Annotated[list[str] | None, typer.Option(help="A task's id, in place of a benchmark; repeatable")]
Only = Annotated[
    list[str] | None, typer.Option("--include", help="Items of the benchmark by key or task name, * ? [] ; repeatable")
]
Most = Annotated[int | None, typer.Option("--tasks", min=1, help="Draw so many of the tasks, by the seed")]
Model = Annotated[list[str] | None, typer.Option(help="A forecaster: model of the catalogue, model:effort; repeatable")]
Prompt = Annotated[
    list[str] | None,
    typer.Option(
        help="generic, limits, drop_1 … drop_6, only_1 … only_6, placebo, misstated; +reason, @tools; repeatable"
    ),
]
Agent = Annotated[str | None, typer.Option(help="Whom they are about: id or label")]
Text = Annotated[
    Path | None, typer.Option(help="File with what forecasters are told of the agent", exists=True, dir_okay=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Of the draw of tasks")]
Label = Annotated[list[str] | None, typer.Option(help="key=value; repeatable")]
NoTemperature = Annotated[bool, typer.Option("--no-temperature", help="Send none, for models that take none; else 0")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the forecasters are asked")]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed")]
Source = Annotated[Path, typer.Argument(help="JSON Lines: task, forecaster, p_hat, …", exists=True, dir_okay=False)]
State = Annotated[str | None, typer.Option(help="ok, excluded or failed")]


@forecasts_app.command("make")
@in_words
def make(
    name: Name,
    benchmark: Benchmark = None,
    task: Task = None,
    include: Only = None,
    tasks: Most = None,
    model: Model = None,
    prompt: Prompt = None,
    agent: Agent = None,
    text: Text = None,
    seed: Seed = 0,
    label: Label = None,
    no_temperature: NoTemperature = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Draw up a set, say what it takes, and ask. Without --model it stays a draft for forecasts that are imported."""
    wish: dict[str, Any] = {
        "name": name, "benchmark": benchmark, "task_ids": task or [], "seed": seed, "labels": labels_of(label),
        "tasks": {"include": include or [], "limit": tasks},
        "about": {"agent": agent, "text": text.read_text(encoding="utf-8") if text else None},
        "forecasters": [model_spec(one, no_temperature=no_temperature) for one in model or []],
        **({"prompts": [_prompt(one) for one in prompt]} if prompt else {}),
    }  # fmt: skip
    with Client() as client:
        made = client.forecasts.create(wish)
        if model:
            said = _estimate(made)
            if not yes and not typer.confirm(f"{said}. Ask now?", err=True):
                raise typer.Exit(FAILED)
            made = _asked(client, client.forecasts.start(made.id))
    emit(made) if as_json else show(made)


@forecasts_app.command("start")
@in_words
def start(set_id: SetId, retry_failed: Retry = False, as_json: Json = False) -> None:
    """Ask for what is missing, and wait."""
    with Client() as client:
        found = _asked(client, client.forecasts.start(set_id, retry_failed=retry_failed))
    emit(found) if as_json else show(found)


@forecasts_app.command("cancel")
@in_words
def cancel(set_id: SetId) -> None:
    """Ask for nothing more; what was made stays."""
    with Client() as client:
        show(client.forecasts.cancel(set_id))


@forecasts_app.command("list")
@in_words
def list_sets(limit: Limit = 50, as_json: Json = False) -> None:
    """List the sets, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.forecasts.list(limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [(s.id, s.name, s.state, s.total, s.ok, s.excluded, s.failed, s.imported, s.created_at) for s in found]
        heads = ("set", "name", "state", "asked for", "ok", "excluded", "failed", "imported", "made")
        out.print(plain_table(heads, rows))


@forecasts_app.command("show")
@in_words
def show_set(set_id: SetId, as_json: Json = False) -> None:
    """Show a set with its counts and its cost."""
    with Client() as client:
        found = client.forecasts.get(set_id)
    emit(found) if as_json else show(found)


@forecasts_app.command("rows")
@in_words
def rows(set_id: SetId, state: State = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List forecasts of a set, newest first. With --json one object per line."""
    with Client() as client:
        found = list(client.forecasts.rows(set_id, {"state": state} if state else None, limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        heads = ("task", "forecaster", "prompt", "state", "p", "before the attempt", "cause")
        table = [
            (f.task_id, f.forecaster, f.prompt, f.state, f.p_hat, _said(f.made_before_attempt), f.cause or "")
            for f in found
        ]
        out.print(plain_table(heads, table))


@forecasts_app.command("import")
@in_words
def import_(set_id: SetId, source: Source) -> None:
    """Record forecasts that were made elsewhere, one JSON object a line; those that are there stay as they are."""
    with Client() as client:
        found = client.forecasts.bring(set_id, json_lines(source))
    line(f"{found.new} new, {found.known} known already")


def show(found: ForecastSet) -> None:
    """Print a set."""
    state = state_words(found.state, found.stopped_because)
    facts({"set": found.id, "name": found.name, "state": state, "about": found.agent_id or "no agent in particular"})
    counts = f"{found.ok} ok ({found.imported} imported), {found.excluded} excluded, {found.failed} failed"
    facts({"forecasts": f"{counts}; {found.total} to be asked for", "tasks": found.tasks, "cost": found.cost_usd})
    facts({"template": f"{found.template} {found.template_digest}"})


def _asked(client: Client, started: ForecastSet) -> ForecastSet:
    wait(client, started.operation_id)
    return client.forecasts.get(started.id)


def _estimate(made: ForecastSet) -> str:
    estimate = made.estimate or {}
    return f"{estimate.get('forecasts')} forecasts of {made.tasks} tasks, {cost_words(estimate)}"


def _prompt(text: str) -> dict[str, Any]:
    rest, _, system = text.partition("@")
    variant, plus, _ = rest.partition("+")
    return {"variant": variant, "reason": bool(plus), **({"system": system} if system else {})}


def _said(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"
