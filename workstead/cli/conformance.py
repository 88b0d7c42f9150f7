"""``workstead scaffolds conformance``: what a scaffold does right and wrong, without a provider's key."""

from typing import Annotated

import typer

from workstead.cli.common import FAILED, emit, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import ConformanceResult, Operation
from workstead.sync import Client
from workstead.terminal import one_line

ScaffoldRef = Annotated[str, typer.Argument(help="NAME@VERSION", show_default=False)]
Cases = Annotated[list[str] | None, typer.Option("--case", help="Only this case; repeatable")]
Quick = Annotated[bool, typer.Option("--quick", help="Only the cases that take less than a minute together")]
Last = Annotated[bool, typer.Option("--last", help="Show the newest results; try nothing")]


@in_words
def conformance(
    scaffold: ScaffoldRef, cases: Cases = None, quick: Quick = False, last: Last = False, as_json: Json = False
) -> None:
    """Try a scaffold out against a provider that follows a script. Exit code 1 unless every case passed."""
    with Client() as client:
        tried = None if last else _try(client, scaffold, cases or [], quick=quick)
        results = [one for one in client.scaffolds.conformance(scaffold) if tried is None or one.case in tried]
    for result in results if as_json else ():
        emit(result)
    if not as_json:
        out.print(plain_table(("case", "result", "run", "what was seen"), [_row(result) for result in results]))
    raise typer.Exit(FAILED if any(one.result == "fail" for one in results) or not results else 0)


def _try(client: Client, scaffold: str, cases: list[str], *, quick: bool) -> dict[str, str]:
    """Return the result of each case that was tried. Exits with 1 where the operation did not succeed."""
    begun = client.scaffolds.check_conformance(scaffold, cases=cases, quick=quick)
    ended = client.operations.wait(begun.id, _say)
    if ended.state != "succeeded" or ended.result is None:
        line(f"{ended.id} {ended.state}: {one_line(str(ended.problem or ''), 300)}", "red")
        raise typer.Exit(FAILED)
    return {str(case): str(result) for case, result in dict(ended.result["results"]).items()}


def _row(result: ConformanceResult) -> tuple[str, str, str | None, str]:
    return result.case, result.result, result.run_id, one_line("; ".join(result.wrong) or result.seen or "", 200)


def _say(operation: Operation) -> None:
    if operation.log:
        note(str(operation.log[-1].get("text", "")))
