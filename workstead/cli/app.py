"""Which commands there are."""

import typer

from workstead.cli.agents import agents_app, scaffolds_app
from workstead.cli.annotations import annotations_app
from workstead.cli.artifacts import artifacts_app
from workstead.cli.benchmarks import benchmarks_app
from workstead.cli.campaigns import campaigns_app
from workstead.cli.configuration import config
from workstead.cli.conformance import conformance
from workstead.cli.demo import demo
from workstead.cli.demo_desktop import demo_desktop
from workstead.cli.doctor import doctor
from workstead.cli.eval.app import eval_app
from workstead.cli.evidence import evidence_app
from workstead.cli.forecasts import forecasts_app
from workstead.cli.grade import grade_app
from workstead.cli.hosts import hosts_app
from workstead.cli.images import images_app
from workstead.cli.judges import judges_app
from workstead.cli.models import models_app
from workstead.cli.operations import operations_app
from workstead.cli.plans import plans_app
from workstead.cli.projects import project_app
from workstead.cli.publications import publications_app
from workstead.cli.regrade import regrade
from workstead.cli.run import run
from workstead.cli.runs import runs_app
from workstead.cli.server import scripted_provider, serve
from workstead.cli.tasks import tasks_app
from workstead.cli.tokens import token_app, whoami
from workstead.cli.try_ import try_
from workstead.cli.webhooks import webhooks_app

EXIT_CODES = (
    "Exit codes: 0 done (run, runs watch, grade, eval: all graded) · 1 could not be done · 2 wrong usage · "
    "3 some runs have no score · 4 (eval) a stop rule or a budget holds the rest · 130 interrupted."
)

app = typer.Typer(
    help="Runs AI agents on real work and grades what they deliver.", epilog=EXIT_CODES, no_args_is_help=True,
    rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
for command in (serve, run, regrade, demo, demo_desktop, doctor, whoami, config, scripted_provider):
    app.command()(command)
app.command("try")(try_)
scaffolds_app.command("conformance")(conformance)
for name, group in (
    ("eval", eval_app),
    ("benchmarks", benchmarks_app),
    ("tasks", tasks_app),
    ("runs", runs_app),
    ("grade", grade_app),
    ("plans", plans_app),
    ("campaigns", campaigns_app),
    ("judges", judges_app),
    ("forecasts", forecasts_app),
    ("annotations", annotations_app),
    ("publications", publications_app),
    ("artifacts", artifacts_app),
    ("evidence", evidence_app),
    ("models", models_app),
    ("agents", agents_app),
    ("scaffolds", scaffolds_app),
    ("images", images_app),
    ("token", token_app),
    ("project", project_app),
    ("hosts", hosts_app),
    ("operations", operations_app),
    ("webhooks", webhooks_app),
):
    app.add_typer(group, name=name)


def main() -> None:
    """Run the command line."""
    app()
