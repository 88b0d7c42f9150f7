"""``workstead project …``: whose things are whose, and how much each may have at once. For operators."""

from typing import Annotated

import typer

from workstead.cli.common import USAGE, emit, fail, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.errors import WorksteadError
from workstead.models import Project
from workstead.sync import Client

project_app = typer.Typer(help="Projects: whose things are whose; for operators.", no_args_is_help=True)

PROJECT_ID = "prj_"
UNLIMITED = "none"

Name = Annotated[str, typer.Argument(help="Name: small letters, digits, . _ -", show_default=False)]
Which = Annotated[str, typer.Argument(help="Name or id", show_default=False)]
MaxRuns = Annotated[int | None, typer.Option(min=0, help="Most live runs at once; default: no limit of its own")]
NewMaxRuns = Annotated[
    str | None, typer.Option("--max-runs", help=f"Most live runs at once, or `{UNLIMITED}`; 0 lets nothing start")
]
Untrusted = Annotated[bool, typer.Option("--untrusted", help="Only where even hostile work is kept in")]
NewUntrusted = Annotated[bool | None, typer.Option("--untrusted/--trusted", help="Whether its work may be hostile")]


@project_app.command("list")
@in_words
def list_projects(as_json: Json = False) -> None:
    """List projects, newest first. With --json one object per line."""
    with Client() as client:
        projects = list(client.projects.list())
    for project in projects if as_json else ():
        emit(project)
    if not as_json:
        rows = [(p.id, p.name, "no limit" if p.max_runs is None else p.max_runs, p.untrusted) for p in projects]
        out.print(plain_table(("project", "name", "live runs", "untrusted"), rows))


@project_app.command("create")
@in_words
def create_project(name: Name, untrusted: Untrusted = False, max_runs: MaxRuns = None, as_json: Json = False) -> None:
    """Make a project. Its first token: `workstead token create --local --project NAME` on the server."""
    with Client() as client:
        _say(client.projects.create(name, untrusted=untrusted, max_runs=max_runs), as_json)


@project_app.command("set")
@in_words
def change_project(
    project: Which, max_runs: NewMaxRuns = None, untrusted: NewUntrusted = None, as_json: Json = False
) -> None:
    """Change how much a project may have at once, or whether it is trusted. Runs that are live go on."""
    changes: dict[str, object] = {}
    if max_runs is not None:
        changes["max_runs"] = _number(max_runs)
    if untrusted is not None:
        changes["untrusted"] = untrusted
    if not changes:
        raise fail("say what to change: --max-runs, --untrusted or --trusted", USAGE)
    with Client() as client:
        _say(client.projects.change(project_id(client, project), **changes), as_json)


def project_id(client: Client, name: str) -> str:
    """Return the id of a project's name or id. Raises WorksteadError if there is none."""
    if name.startswith(PROJECT_ID):
        return name
    for project in client.projects.list():
        if project.name == name:
            return project.id
    raise WorksteadError(f"there is no project {name!r}")


def _number(text: str) -> int | None:
    if text == UNLIMITED:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter(f"{text!r} is neither a number nor `{UNLIMITED}`")
    return int(text)


def _say(project: Project, as_json: bool) -> None:
    limit = "no limit of live runs" if project.max_runs is None else f"at most {project.max_runs} live runs"
    emit(project) if as_json else line(
        f"{project.id} {project.name}: {limit}, {'untrusted' if project.untrusted else 'trusted'}"
    )
