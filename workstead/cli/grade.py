"""``workstead grade``: a new round of grading on what runs delivered, without running anything anew; and what there is of gradings."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from workstead.aio import AsyncClient
from workstead.cli import grade_jobs, grade_reviews
from workstead.cli.common import GRADED, UNGRADED, emit, in_words, out
from workstead.cli.grade_controls import controls
from workstead.cli.grade_jobbench import jobbench_app
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.cli.together import together
from workstead.cli.watch import note
from workstead.models import Grading

AT_ONCE = 8
_RUNS = "runs"


class _RunsUnlessNamed(TyperGroup):
    """``grade run_…`` is ``grade runs run_…``: a word that is no command is a run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_RUNS, *args]
        return super().parse_args(ctx, args)


grade_app = typer.Typer(
    help="Grade what runs delivered, again: `grade RUN …`; and the gradings there are.",
    cls=_RunsUnlessNamed,
    no_args_is_help=True,
)
grade_app.add_typer(jobbench_app, name="jobbench")
grade_jobs.add_to(grade_app)
grade_reviews.add_to(grade_app)
grade_app.command("controls")(controls)

Ids = Annotated[list[str], typer.Argument(help="Runs with a sealed deliverable", show_default=False)]
Round = Annotated[str, typer.Option("--round", help="`new`, or the number that the round is to have")]
Plan = Annotated[str | None, typer.Option("--plan", help="Under another grading plan than the run's own")]
Primary = Annotated[bool, typer.Option("--primary", help="The plan becomes the run's own, together with its verdict")]
Detach = Annotated[bool, typer.Option("--detach", help="Do not wait for the verdicts")]


@grade_app.command(_RUNS)
@in_words
def grade(
    ids: Ids,
    round_: Round = "new",
    plan: Plan = None,
    primary: Primary = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Grade runs again and wait. Exit code 0: every grading reached a score; 3: some did not.

    With --json one object per grading and line.
    """
    if round_ != "new" and not (round_.isascii() and round_.isdecimal() and int(round_) > 0):
        raise typer.BadParameter(f"{round_!r} is neither `new` nor a number above 0")
    number = None if round_ == "new" else int(round_)
    gradings = asyncio.run(_regrade(ids, {"round": number, "plan": plan, "primary": primary}, detach))
    for grading in gradings if as_json else ():
        emit(grading)
    if not as_json:
        out.print(plain_table(("run", "grading", "method", "round", "state", "score", "cause"), map(_row, gradings)))
    raise typer.Exit(GRADED if detach or all(g.state == "graded" for g in gradings) else UNGRADED)


async def _regrade(ids: Sequence[str], said: Mapping[str, Any], detach: bool) -> list[Grading]:
    async with AsyncClient() as client:
        gradings = [g for run_id in ids for g in await client.runs.regrade(run_id, **said)]
        note(f"{len(gradings)} gradings of {len(ids)} runs")
        return gradings if detach else await together(lambda g: client.gradings.wait(g.id), gradings, AT_ONCE)


def _row(g: Grading) -> tuple[object, ...]:
    score = None if g.score is None or g.max_score is None else f"{g.score:g}/{g.max_score:g}"
    return g.run_id, g.id, g.method, g.round, g.state, score, g.cause
