"""``workstead serve`` and ``workstead token``: commands on the machine of the service."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import in_words
from workstead.cli.service_process import environment, replace_by_service

token_app = typer.Typer(help="Tokens, made on the server's own machine.", no_args_is_help=True)

DataDir = Annotated[Path | None, typer.Option(help="Data directory; default /var/lib/workstead for root")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the API; 0 takes a free one")]
Scopes = Annotated[list[str] | None, typer.Option("--scope", help="What it may do; repeatable; default: everything")]
Note = Annotated[str, typer.Option(help="What it is for")]


@in_words
def serve(data_dir: DataDir = None, port: Port = None) -> None:
    """Run the whole service on this machine: API, worker, grader and, without a database URL, PostgreSQL."""
    replace_by_service(["serve"], environment(data_dir, port))


@token_app.command("create")
@in_words
def create_token(scope: Scopes = None, note: Note = "", data_dir: DataDir = None) -> None:
    """Make a token and print it, once."""
    scopes = [argument for name in scope or [] for argument in ("--scope", name)]
    notes = ["--note", note] if note else []
    replace_by_service(["token", "create", *scopes, *notes], environment(data_dir, None))
