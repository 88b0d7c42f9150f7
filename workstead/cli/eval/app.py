"""``workstead eval NAME …`` in one line, and its further commands."""

from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from workstead.cli.eval.begin import benchmark, plan, run_file, start
from workstead.cli.eval.control import add_agent, hold, invalidate, release, resume, retry, set_, stop
from workstead.cli.eval.drawn import leaderboard, plot, series
from workstead.cli.eval.looking import list_, log, matrix, show, watch
from workstead.cli.eval.replaying import replay
from workstead.cli.eval.results import compare, export, report, tables

DEFAULT = "benchmark"
EPILOG = (
    "Exit codes of eval NAME, run, start, watch, resume and retry: 0 all graded · 3 some runs have no score · "
    "4 a stop rule or a budget holds what is left · 1 could not be done (a preflight that failed, too) · 130 Ctrl-C (it goes on)."
)


class BenchmarkFirst(TyperGroup):
    """``eval NAME …`` is ``eval benchmark NAME …`` where NAME is no command."""

    _HELP: ClassVar[frozenset[str]] = frozenset({"--help"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in self._HELP:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


eval_app = typer.Typer(
    help="Evaluate agents on a benchmark: `workstead eval NAME -a SCAFFOLD:MODEL@EFFORT …`, or `eval run FILE.yaml`.",
    cls=BenchmarkFirst, epilog=EPILOG, no_args_is_help=True,
)  # fmt: skip
for name, command in (
    (DEFAULT, benchmark),
    ("run", run_file),
    ("plan", plan),
    ("start", start),
    ("watch", watch),
    ("list", list_),
    ("show", show),
    ("log", log),
    ("matrix", matrix),
    ("set", set_),
    ("hold", hold),
    ("release", release),
    ("resume", resume),
    ("stop", stop),
    ("retry", retry),
    ("add-agent", add_agent),
    ("invalidate", invalidate),
    ("report", report),
    ("tables", tables),
    ("export", export),
    ("compare", compare),
    ("leaderboard", leaderboard),
    ("plot", plot),
    ("series", series),
    ("replay", replay),
):
    eval_app.command(name)(command)
