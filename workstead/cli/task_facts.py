"""``workstead tasks facts …``: what a task's simulated client knows."""

from typing import Annotated

import typer

from workstead.cli.common import FAILED, emit, facts, in_words, line
from workstead.cli.options import Json
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client
from workstead.terminal import one_line

facts_app = typer.Typer(help="What a task's simulated client knows.", no_args_is_help=True)

TaskId = Annotated[str, typer.Argument(help="Task, as listed", show_default=False)]
By = Annotated[str | None, typer.Option("--model", help="Catalogue name; default: the one that plays the client")]
Seed = Annotated[int, typer.Option(help="Another seed, another sheet", min=0)]


@facts_app.command("make")
@in_words
def make_facts(task: TaskId, model: By = None, seed: Seed = 1, as_json: Json = False) -> None:
    """Have a model write down what the client knows, once per task. Exit code 1 if it did not succeed."""
    with Client() as client:
        begun = client.tasks.make_client_facts(task, model=model, seed=seed)
        ended = client.operations.wait(begun.id, _say)
    if as_json:
        emit(ended)
    elif ended.state == "succeeded" and ended.result is not None:
        made = "made" if ended.result.get("created") else "made before"
        line(f"{task}: facts {made} by {one_line(str(ended.result.get('model')))}")
    else:
        problem = ended.problem or {}
        line(f"{ended.state}: {problem.get('type')}: {one_line(str(problem.get('detail')), 300)}", "red")
    raise typer.Exit(0 if ended.state == "succeeded" else FAILED)


@facts_app.command("show")
@in_words
def show_facts(task: TaskId, as_json: Json = False) -> None:
    """Show what the client knows and where it comes from. Needs the scope hidden:read."""
    with Client() as client:
        found = client.tasks.client_facts(task)
    if as_json:
        emit(found)
        return
    origin = found.model_dump(include={"source", "model", "reported_model", "template", "seed", "sha256", "author"})
    facts(origin | {"made": found.created_at})
    line(found.text)


def _say(operation: Operation) -> None:
    note(operation.state)
