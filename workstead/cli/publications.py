"""``workstead publications …``: results at an address that stays."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import emit, facts, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.models_publications import Publication
from workstead.sync import Client
from workstead.terminal import one_line

publications_app = typer.Typer(help="Results at an address that stays.", no_args_is_help=True)

Export = Annotated[str, typer.Argument(help="Operation of `workstead eval export`", show_default=False)]
Name = Annotated[
    str, typer.Argument(help="Lower-case name; the same one again is its next version", show_default=False)
]
Public = Annotated[bool, typer.Option("--public", help="Anybody who has the address may read it (profile public only)")]
Id = Annotated[str, typer.Argument(help="Publication, as listed", show_default=False)]
Agent = Annotated[str, typer.Argument(help="Label or alias, as it was published", show_default=False)]
Reason = Annotated[str, typer.Argument(help="Said in the place of its figures", show_default=False)]
Named = Annotated[str | None, typer.Option("--name", help="Of this name only")]
Target = Annotated[Path, typer.Argument(help="New file", show_default=False)]


@publications_app.command()
@in_words
def create(export: Export, name: Name, public: Public = False, as_json: Json = False) -> None:
    """Publish an export."""
    with Client() as client:
        _said(client.publications.create(export, name, public=public), as_json=as_json)


@publications_app.command("list")
@in_words
def list_all(named: Named = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List publications, newest first."""
    with Client() as client:
        found = list(client.publications.list({"name": named} if named else None, limit=limit))
    if as_json:
        emit({"data": [one.model_dump(mode="json") for one in found]})
        return
    rows = [
        (one.id, f"{one.name} {one.number}", one.profile, "anybody" if one.public else "project", one.created_at.date())
        for one in found
    ]
    out.print(plain_table(("id", "name", "profile", "readers", "published"), rows))


@publications_app.command()
@in_words
def show(publication: Id, as_json: Json = False) -> None:
    """Show what was published, and what of it is withdrawn."""
    with Client() as client:
        _said(client.publications.get(publication), as_json=as_json)


@publications_app.command("open")
@in_words
def open_it(publication: Id, as_json: Json = False) -> None:
    """Let anybody who has the address read it."""
    with Client() as client:
        _said(client.publications.open(publication), as_json=as_json)


@publications_app.command()
@in_words
def close(publication: Id, as_json: Json = False) -> None:
    """Let only the project read it."""
    with Client() as client:
        _said(client.publications.open(publication, public=False), as_json=as_json)


@publications_app.command()
@in_words
def withdraw(publication: Id, agent: Agent, reason: Reason, as_json: Json = False) -> None:
    """Take an agent's figures out of what is shown."""
    with Client() as client:
        _said(client.publications.withdraw(publication, agent, reason), as_json=as_json)


@publications_app.command()
@in_words
def get(publication: Id, target: Target) -> None:
    """Download the zip that was published."""
    with Client() as client:
        size = client.publications.download(publication, target)
    line(f"{target}: {size} bytes", "green")


def _said(found: Publication, *, as_json: bool) -> None:
    if as_json:
        emit(found.model_dump(mode="json"))
        return
    summary = found.summary
    facts(
        {
            "publication": f"{found.id} · {found.name} {found.number}",
            "title": one_line(str(summary.get("title", "")), 200),
            "readers": f"anybody, at {found.url}" if found.public else "the project",
            "rests on": ", ".join(f"{summary.get(what)} {what}" for what in ("agents", "tasks", "runs")),
            "report, archive": f"{found.digest}, {found.archive}",
            "before it": found.previous,
            "newest": found.newest,
        }
    )
    for one in found.withdrawn:
        line(f"withdrawn: {one_line(one.agent, 80)}: {one_line(one.reason, 300)}", "yellow")
