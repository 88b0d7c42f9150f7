"""``workstead models …``: what runs may be given to think with, their keys, and whether they work."""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.catalogue import Breaker, CatalogueModel
from workstead.cli.common import FAILED, emit, fail, in_words, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client
from workstead.terminal import one_line

models_app = typer.Typer(help="What runs may be given to think with.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Model: its name or id", show_default=False)]
Source = Annotated[str, typer.Argument(help="Name of a public model, or a TOML file with an entry", show_default=False)]
Shipped = Annotated[bool, typer.Option("--shipped", help="The public models that the service knows")]
Purpose = Annotated[str, typer.Option(help="model, or judge: then it never serves an agent")]
FromEnv = Annotated[
    str | None, typer.Option("--from-env", help="Environment variable with the key; else standard input")
]
Remove = Annotated[bool, typer.Option("--remove", help="Forget the key")]
Reason = Annotated[str, typer.Option(help="For those who wait")]


@models_app.command("list")
@in_words
def list_models(shipped: Shipped = False, limit: Limit = 50, as_json: Json = False) -> None:
    """List the project's models, or with --shipped what can be added by name. With --json one object per line."""
    with Client() as client:
        if shipped:
            _show_shipped(client.models.shipped(), as_json)
            return
        found = list(client.models.list(limit=limit))
        states = {b.model_id: b for b in client.breakers.list()}
    for model in found if as_json else ():
        emit(model)
    if not as_json:
        rows = [_row(m, states.get(m.id)) for m in found]
        out.print(plain_table(("model", "name", "dialect", "efforts", "key", "checked", "state"), rows))


@models_app.command("add")
@in_words
def add_model(source: Source, as_json: Json = False) -> None:
    """Add a model: a public one by its name (models list --shipped), or an entry of your own from a TOML file."""
    with Client() as client:
        spec = _from_file(Path(source)) if source.endswith(".toml") else _from_shipped(client, source)
        model = client.models.create(spec)
    emit(model) if as_json else line(f"{model.id}: {model.name}")
    if not as_json and not model.has_credential:
        note(f"bring its key with: workstead models credential {model.name}")


@models_app.command("credential")
@in_words
def set_credential(
    model: Name, purpose: Purpose = "model", from_env: FromEnv = None, remove: Remove = False, as_json: Json = False
) -> None:
    """Bring, replace or forget a model's key. It is read from standard input; nobody can read it back."""
    with Client() as client:
        found = _find(client, model)
        if remove:
            client.models.remove_credential(found.id)
            line(f"{found.name}: key forgotten")
            return
        state = client.models.put_credential(found.id, read_secret(from_env), purpose=purpose)
    emit(state) if as_json else line(f"{found.name}: key {state.state}, for {state.purpose}, sha256 {state.hint}…")


@models_app.command("check")
@in_words
def check_model(model: Name, as_json: Json = False) -> None:
    """Ask a model for a stream, a tool call, an image, each effort and its usage. Exit code 1 if it does not answer."""
    with Client() as client:
        found = _find(client, model)
        done = client.operations.wait(client.models.check(found.id).id, _say)
    if as_json:
        emit(done)
    else:
        _show_check(done)
    raise typer.Exit(0 if (done.result or {}).get("ok") else FAILED)


@models_app.command("delete")
@in_words
def delete_model(model: Name) -> None:
    """Delete a model that no agent names, with its key."""
    with Client() as client:
        found = _find(client, model)
        client.models.delete(found.id)
    line(f"{found.name}: deleted")


@models_app.command("hold")
@in_words
def hold_model(model: Name, reason: Reason = "", as_json: Json = False) -> None:
    """Shut the way to a model: its runs are held until `workstead models resume`."""
    _set(model, "open", reason, as_json)


@models_app.command("resume")
@in_words
def resume_model(model: Name, as_json: Json = False) -> None:
    """Open the way to a model again, also one that was shut because its provider failed."""
    _set(model, "closed", "", as_json)


def _set(model: str, state: str, reason: str, as_json: bool) -> None:
    with Client() as client:
        breaker = client.breakers.set(_find(client, model).id, state, reason=reason)
    emit(breaker) if as_json else line(f"{breaker.model}: {_state(breaker)}")


def _find(client: Client, model: str) -> CatalogueModel:
    if model.startswith("mdl_"):
        return client.models.get(model)
    for found in client.models.list({"name": model}, limit=1):
        return found
    raise fail(f"no model {model}: see `workstead models list`")


def _from_file(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise fail(f"{path} is not TOML: {error}") from error


def _from_shipped(client: Client, name: str) -> Mapping[str, Any]:
    known = {str(spec["name"]): spec for spec in client.models.shipped()}
    if name not in known:
        raise fail(f"no public model {name} is known: see `workstead models list --shipped`, or give a .toml file")
    return known[name]


def read_secret(variable: str | None) -> str:
    """Return a key from a variable of the environment, or typed, or from standard input."""
    if variable is not None:
        value = os.environ.get(variable, "")
    elif sys.stdin.isatty():
        value = str(typer.prompt("key", hide_input=True, err=True))
    else:
        value = sys.stdin.readline()
    if not value.strip():
        raise fail("there is no key")
    return value.strip()


def _show_shipped(specs: Sequence[dict[str, Any]], as_json: bool) -> None:
    for spec in specs if as_json else ():
        emit(spec)
    if not as_json:
        rows = [(s["name"], s.get("vendor"), s.get("context_window"), " ".join(s["efforts"]) or None) for s in specs]
        out.print(plain_table(("name", "vendor", "context", "efforts"), rows))


def _row(model: CatalogueModel, breaker: Breaker | None) -> tuple[object, ...]:
    spec = model.spec
    key = "yes" if model.has_credential else None
    efforts = " ".join(spec.get("efforts") or ()) or None
    return model.id, model.name, spec.get("dialect"), efforts, key, model.checked_at, _state(breaker)


def _state(breaker: Breaker | None) -> str | None:
    if breaker is None or breaker.state == "closed":
        return None if breaker is None else "ok"
    return f"{breaker.state}: {one_line(breaker.reason or '', 80)}".rstrip(": ")


def _show_check(operation: Operation) -> None:
    checks: list[dict[str, Any]] = (operation.result or {}).get("checks") or []
    rows = [(c.get("name"), c.get("state"), one_line(str(c.get("detail") or ""), 160) or None) for c in checks]
    out.print(plain_table(("check", "state", "detail"), rows))
    problem = operation.problem or {}
    if problem:
        line(f"{problem.get('type')}: {one_line(str(problem.get('detail')), 300)}")


def _say(operation: Operation) -> None:
    note(f"{operation.state}, {operation.done} {operation.unit}")
