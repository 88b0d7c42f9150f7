"""``workstead operations …``: what the service does in the background."""

from typing import Annotated

import typer

from workstead.cli.common import FAILED, emit, facts, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client
from workstead.terminal import one_line

operations_app = typer.Typer(help="What the service does in the background.", no_args_is_help=True)

OperationId = Annotated[str, typer.Argument(help="Operation, as listed", show_default=False)]
Kind = Annotated[list[str] | None, typer.Option(help="Only of this kind; repeatable")]
State = Annotated[list[str] | None, typer.Option(help="Only in this state; repeatable")]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Until it has ended")]
SUCCEEDED = "succeeded"


@operations_app.command("list")
@in_words
def list_operations(kind: Kind = None, state: State = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List operations, newest first. With --json one object per line."""
    filters = {name: values for name, values in (("kind", kind), ("state", state)) if values}
    with Client() as client:
        found = list(client.operations.list(filters, limit=limit))
    for operation in found if as_json else ():
        emit(operation)
    if not as_json:
        rows = [(o.id, o.kind, o.state, _done(o), o.created_at) for o in found]
        out.print(plain_table(("operation", "kind", "state", "done", "made"), rows))


@operations_app.command("show")
@in_words
def show_operation(operation: OperationId, wait: Wait = False, as_json: Json = False) -> None:
    """Show an operation; with --wait once it has ended. Exit code 1 if it has ended and not succeeded."""
    with Client() as client:
        found = client.operations.wait(operation, _say) if wait else client.operations.get(operation)
    if as_json:
        emit(found)
    else:
        _facts(found)
    raise typer.Exit(FAILED if found.ended and found.state != SUCCEEDED else 0)


@operations_app.command("cancel")
@in_words
def cancel_operation(operation: OperationId, as_json: Json = False) -> None:
    """Ask for an operation's end; it comes between two pieces of its work."""
    with Client() as client:
        found = client.operations.cancel(operation)
    emit(found) if as_json else line(f"{found.id}: {found.state}")


def _facts(operation: Operation) -> None:
    problem = operation.problem or {}
    facts(
        {
            "operation": operation.id,
            "kind": operation.kind,
            "state": operation.state,
            "done": _done(operation),
            "result": operation.result,
            "problem": " ".join(str(problem[key]) for key in ("type", "detail") if problem.get(key)),
            "ended": operation.ended_at,
        }
    )
    for entry in operation.log:
        line(f"  {one_line(str(entry.get('at')), 40)} {one_line(str(entry.get('text')), 300)}", "dim")


def _say(operation: Operation) -> None:
    note(f"{operation.state}, {_done(operation)}")


def _done(operation: Operation) -> str:
    return f"{operation.done}{'' if operation.total is None else f' of {operation.total}'} {operation.unit}"
