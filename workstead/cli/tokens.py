"""``workstead token …`` and ``whoami``: through the API where a token is known, else on the server's own machine."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import emit, facts, in_words, line, out
from workstead.cli.options import Json, duration
from workstead.cli.service_process import environment, replace_by_service
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.config import NotConfigured, resolve
from workstead.sync import Client

token_app = typer.Typer(help="Tokens that open the API.", no_args_is_help=True)

DataDir = Annotated[Path | None, typer.Option(help="Data directory of the service on this machine; implies --local")]
Local = Annotated[
    bool, typer.Option("--local", help="Straight into the database of the service on this machine, without a token")
]
Project = Annotated[str | None, typer.Option(help="Name of another project, made where it is missing; with --local")]
Scopes = Annotated[list[str] | None, typer.Option("--scope", help="What it may do; repeatable; default: everything")]
Note = Annotated[str, typer.Option(help="What it is for")]
Expires = Annotated[str | None, typer.Option("--expires-in", help="15m, 12h, 30d; default: never")]
TokenId = Annotated[str, typer.Argument(help="Token, tok_…, as listed", show_default=False)]


@token_app.command("create")
@in_words
def create_token(
    scope: Scopes = None,
    note_: Annotated[str, typer.Option("--note", help="What it is for")] = "",
    expires_in: Expires = None,
    project: Project = None,
    local: Local = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a token and print its secret, once."""
    if local or data_dir is not None or project is not None or not _configured():
        if expires_in is not None or as_json:
            raise typer.BadParameter("--expires-in and --json work through the API only")
        _create_locally(scope or [], note_, project, data_dir)
    expires = None if expires_in is None else datetime.now(UTC) + duration(expires_in)
    with Client() as client:
        made = client.tokens.create(scope or ["admin"], note=note_, expires_at=expires)
    if as_json:
        emit(made)
        return
    note(f"token {made.id} of {client.url}: {', '.join(made.scopes)}; shown this once")
    line(made.secret or "")


def _configured() -> bool:
    try:
        resolve()
    except NotConfigured:
        return False
    return True


def _create_locally(scopes: list[str], note_: str, project: str | None, data_dir: Path | None) -> None:
    """Become the server's own command. Does not return."""
    arguments = [argument for name in scopes for argument in ("--scope", name)]
    arguments += ["--note", note_] if note_ else []
    arguments += ["--project", project] if project else []
    replace_by_service(["token", "create", *arguments], environment(data_dir, None))


@token_app.command("list")
@in_words
def list_tokens(as_json: Json = False) -> None:
    """List the project's tokens, without secrets. With --json one object per line."""
    with Client() as client:
        tokens = client.tokens.list()
    if as_json:
        for token in tokens:
            emit(token)
        return
    columns = ("token", "begins", "scopes", "note", "created", "last used", "expires", "revoked")
    times = [(t.created_at, t.last_used_at, t.expires_at, t.revoked_at) for t in tokens]
    rows = [(t.id, t.prefix, ", ".join(t.scopes), t.note, *map(_day, at)) for t, at in zip(tokens, times, strict=True)]
    out.print(plain_table(columns, rows))


@token_app.command("revoke")
@in_words
def revoke_token(token: TokenId) -> None:
    """Revoke a token: at once for requests, within 5 s for open streams."""
    with Client() as client:
        client.tokens.revoke(token)
    line(f"{token}: revoked")


@in_words
def whoami(as_json: Json = False) -> None:
    """Say which service this is, which project and what this token may do."""
    with Client() as client:
        me = client.me()
    if as_json:
        emit({"url": client.url, **me.model_dump(mode="json")})
        return
    facts(
        {
            "service": client.url,
            "project": me.project_id,
            "token": me.token_id,
            "scopes": ", ".join(me.scopes),
            "note": me.note,
            "expires": me.expires_at,
        }
    )


def _day(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%d %H:%M")
