"""``workstead agents …`` and ``workstead scaffolds …``: what is measured, and what it is made of."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import emit, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.service_process import environment, replace_by_service
from workstead.cli.tables import plain_table
from workstead.sync import Client

agents_app = typer.Typer(help="Agents: scaffold + model + settings.", no_args_is_help=True)
scaffolds_app = typer.Typer(help="Scaffolds: what turns a model into a worker.", no_args_is_help=True)

ScaffoldRef = Annotated[str, typer.Argument(help="NAME@VERSION", show_default=False)]
Model = Annotated[str | None, typer.Option(help="Model that it works with")]
Label = Annotated[str | None, typer.Option(help="Short unique name; default: made from its parts")]
Manifest = Annotated[Path, typer.Argument(help="Scaffold manifest, TOML or JSON", show_default=False)]


@agents_app.command("list")
@in_words
def list_agents(as_json: Json = False) -> None:
    """List agents. With --json one object per line."""
    with Client() as client:
        agents = list(client.agents.list())
    for agent in agents if as_json else ():
        emit(agent)
    if not as_json:
        out.print(
            plain_table(("agent", "label", "scaffold", "model"), [(a.id, a.label, a.scaffold, a.model) for a in agents])
        )


@agents_app.command("create")
@in_words
def create_agent(scaffold: ScaffoldRef, model: Model = None, label: Label = None, as_json: Json = False) -> None:
    """Create an agent, or find the one that is there."""
    with Client() as client:
        agent = client.agents.create(scaffold, model=model, label=label)
    emit(agent) if as_json else line(f"{agent.id} {agent.label}")


@scaffolds_app.command("list")
@in_words
def list_scaffolds(as_json: Json = False) -> None:
    """List registered scaffolds. With --json one object per line."""
    with Client() as client:
        scaffolds = list(client.scaffolds.list())
    for scaffold in scaffolds if as_json else ():
        emit(scaffold)
    if not as_json:
        out.print(plain_table(("scaffold", "name", "version"), [(s.id, s.name, s.version) for s in scaffolds]))


@scaffolds_app.command("lint")
@in_words
def lint_scaffold(manifest: Manifest) -> None:
    """Check a manifest, without a service."""
    replace_by_service(["scaffold", "lint", str(manifest)], environment(None, None))


@scaffolds_app.command("parse")
@in_words
def parse_output(
    manifest: Manifest,
    log: Annotated[Path, typer.Argument(help="What the program printed", show_default=False)],
) -> None:
    """Say what a manifest's mapping makes of a program's output, line by line, without a service."""
    replace_by_service(["scaffold", "parse", str(manifest), str(log)], environment(None, None))


@scaffolds_app.command("register")
@in_words
def register_scaffold(manifest: Manifest, as_json: Json = False) -> None:
    """Register a scaffold; the same manifest again finds it."""
    with Client() as client:
        scaffold = client.scaffolds.register(manifest)
    emit(scaffold) if as_json else line(f"{scaffold.id} {scaffold.ref}")
