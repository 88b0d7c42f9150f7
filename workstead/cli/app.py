"""Which commands there are."""

import typer

from workstead.cli.demo import demo
from workstead.cli.doctor import doctor
from workstead.cli.run import run
from workstead.cli.runs import artifacts_app, runs_app
from workstead.cli.server import serve, token_app

app = typer.Typer(
    help="Runs AI agents on real work and grades what they deliver.", no_args_is_help=True, rich_markup_mode=None,
    pretty_exceptions_enable=False,
)  # fmt: skip
app.command()(serve)
app.command()(run)
app.command()(demo)
app.command()(doctor)
app.add_typer(runs_app, name="runs")
app.add_typer(artifacts_app, name="artifacts")
app.add_typer(token_app, name="token")


def main() -> None:
    """Run the command line."""
    app()
