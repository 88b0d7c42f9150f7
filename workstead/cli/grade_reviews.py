"""``workstead grade votes``, ``contest``, ``override``, ``withdraw``, ``reviews`` and ``export``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from workstead.cli.common import emit, in_words, line, out
from workstead.cli.options import Json, Limit, Where, grouped, pairs
from workstead.cli.tables import plain_table
from workstead.sync import Client
from workstead.terminal import one_line

GradingId = Annotated[str, typer.Argument(help="Grading, grd_…", show_default=False)]
ReviewId = Annotated[str, typer.Argument(help="Contest or override, rvw_…", show_default=False)]
Score = Annotated[float, typer.Argument(min=0, help="What it gets in place of the verdict", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with it", show_default=False)]
Author = Annotated[str | None, typer.Option("--author", help="Who says so; default: this token")]
MaxScore = Annotated[float | None, typer.Option("--max-score", min=0, help="Default: the verdict's own")]
OfRun = Annotated[list[str] | None, typer.Option("--run", help="Only of this run; repeatable", show_default=False)]
Target = Annotated[Path, typer.Argument(help="File to write, which must not exist", show_default=False)]
Table = Annotated[Literal["verdicts", "criteria", "votes"], typer.Option("--table", help="One row for each of these")]
Format = Annotated[Literal["csv", "jsonl"], typer.Option("--format", help="How it is written")]


def add_to(app: typer.Typer) -> None:
    for name, command in (
        ("votes", votes),
        ("contest", contest),
        ("override", override),
        ("withdraw", withdraw),
        ("reviews", reviews),
        ("export", export),
    ):
        app.command(name)(command)


@in_words
def votes(grading: GradingId, as_json: Json = False) -> None:
    """Show what each judge said. With --json one object per line, contents included."""
    with Client() as client:
        found = list(client.votes.list(grading))
    for vote in found if as_json else ():
        emit(vote)
    if not as_json:
        rows = [(v.judge, v.item, v.n, v.state, v.cause, v.asks, v.template, v.took_s) for v in found]
        out.print(plain_table(("judge", "item", "n", "state", "cause", "asks", "prompt", "seconds"), rows))


@in_words
def contest(grading: GradingId, reason: Reason, author: Author = None) -> None:
    """Say that a verdict is doubted: it stands, and is shown with the doubt."""
    with Client() as client:
        made = client.reviews.contest(grading, reason, author=author)
    line(f"{made.id}: {grading} is contested")


@in_words
def override(
    grading: GradingId, score: Score, reason: Reason, max_score: MaxScore = None, author: Author = None
) -> None:
    """Put a score in a verdict's place. The verdict is kept and shown; the run follows, and is flagged."""
    with Client() as client:
        made = client.reviews.override(grading, score, reason, max_score=max_score, author=author)
    line(f"{made.id}: {grading} counts as {made.score:g}/{made.max_score:g}")


@in_words
def withdraw(review: ReviewId) -> None:
    """Take a contest or an override back; what stood before stands again."""
    with Client() as client:
        client.reviews.withdraw(review)
    line(f"{review}: withdrawn")


@in_words
def reviews(run: OfRun = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List contests and overrides, newest first, withdrawn ones included. With --json one object per line."""
    with Client() as client:
        found = list(client.reviews.list({"run_id": run} if run else {}, limit=limit))
    for review in found if as_json else ():
        emit(review)
    if not as_json:
        rows = [
            (r.id, r.kind, r.grading_id, r.run_id, r.score, r.author, one_line(r.reason, 60), r.withdrawn_at)
            for r in found
        ]
        out.print(plain_table(("review", "kind", "grading", "run", "score", "author", "reason", "withdrawn"), rows))


@in_words
def export(target: Target, table: Table = "verdicts", format_: Format = "csv", where: Where = None) -> None:
    """Write gradings as a table: verdicts, criteria or votes. --filter takes what the list of gradings takes."""
    with Client() as client:
        size = client.gradings.export(target, table, filters=grouped(pairs(where)), format=format_)
    line(f"{target}: {size} bytes")
