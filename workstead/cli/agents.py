"""``workstead agents …`` and ``workstead scaffolds …``: what is measured, and what it is made of."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.common import emit, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.service_process import environment, replace_by_service
from workstead.cli.tables import plain_table
from workstead.sync import Client

agents_app = typer.Typer(help="Agents: scaffold + model + settings.", no_args_is_help=True)
scaffolds_app = typer.Typer(help="Scaffolds: what turns a model into a worker.", no_args_is_help=True)

ScaffoldRef = Annotated[str, typer.Argument(help="NAME@VERSION; latest is a version", show_default=False)]
Model = Annotated[str | None, typer.Option(help="Model that it works with")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE, for example effort=max or max_turns=50; repeatable")
]
Shipped = Annotated[bool, typer.Option("--shipped", help="Those that come with the service")]
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
def create_agent(
    scaffold: ScaffoldRef, model: Model = None, setting: Settings = None, label: Label = None, as_json: Json = False
) -> None:
    """Create an agent, or find the one that is there."""
    with Client() as client:
        agent = client.agents.create(scaffold, model=model, settings=_settings(setting or []), label=label)
    emit(agent) if as_json else line(f"{agent.id} {agent.label}")


@scaffolds_app.command("list")
@in_words
def list_scaffolds(shipped: Shipped = False, as_json: Json = False) -> None:
    """List the project's scaffolds, or with --shipped those that agents may name anyway. With --json one object per line."""
    with Client() as client:
        if shipped:
            _show_shipped(client.scaffolds.shipped(), as_json)
            return
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


def _show_shipped(manifests: Sequence[dict[str, Any]], as_json: bool) -> None:
    for manifest in manifests if as_json else ():
        emit(manifest)
    if not as_json:
        rows = [(f"{m['name']}@{m['version']}", m["kind"], m.get("kit") or "") for m in manifests]
        out.print(plain_table(("scaffold", "kind", "kit"), rows))


def _settings(given: Sequence[str]) -> dict[str, Any]:
    """Values are JSON where they are JSON, else text."""
    found: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
