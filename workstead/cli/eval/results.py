"""``workstead eval report``, ``tables``, ``compare`` and ``export``: what came of it."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from workstead.cli.common import FAILED, emit, facts, fail, in_words, line, out
from workstead.cli.eval import options as o
from workstead.cli.eval.reported import show_report
from workstead.cli.eval.service import service
from workstead.cli.eval.words import setting
from workstead.cli.options import Json, pairs
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client

SUCCEEDED = "succeeded"
Ids = Annotated[list[str], typer.Argument(help="Evaluations, eval_…", show_default=False)]
Two = Annotated[list[str], typer.Argument(help="The one that is compared with, and the other", show_default=False)]
Kind = Annotated[
    str | None,
    typer.Option("--kind", help="overview, jobbench, rli, payworthy, freelance; default: its benchmark's own"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="KEY=VALUE of the report: seed, draws, missing, contaminated, disputed, grouping, reference_agent, options.NAME; "
        "repeatable",
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="New file for the report as a page that opens offline")]
Table = Annotated[
    str | None, typer.Argument(help="Table, such as runs or verdicts; none: list them", show_default=False)
]
Target = Annotated[Path | None, typer.Option("--output", "-o", help="New file, .csv, .parquet or .json")]
Profile = Annotated[str, typer.Option(help="internal, reviewer or public: what is left out")]
Waive = Annotated[
    list[str] | None, typer.Option("--waive", help="Name of a finding of the leak scan to let pass; repeatable")
]
Alias = Annotated[
    list[str] | None,
    typer.Option("--alias", help="AGENT=NAME: what profile public calls an agent (label or id); repeatable"),
]
Embargo = Annotated[
    list[str] | None, typer.Option("--embargo", help="Agent that profile public leaves out altogether; repeatable")
]
Secret = Annotated[
    list[str] | None, typer.Option("--secret", help="Word that the leak scan is to look for, too; repeatable")
]
Zip = Annotated[Path, typer.Option("--output", "-o", help="New file, .zip", show_default=False)]


@in_words
def report(ids: Ids, kind: Kind = None, settings: Settings = None, html: Html = None, as_json: Json = False) -> None:
    """Print the figures of one or more evaluations, with what they rest on and what is left out."""
    said = report_settings(settings)
    with service() as there, Client(there.url, there.token) as client:
        if html is not None:
            if len(ids) != 1:
                raise typer.BadParameter("--html is of one evaluation")
            _write(html, client.reports.page(ids[0], kind=kind, settings=said))
            return
        if len(ids) == 1:
            found = client.reports.of(ids[0], kind=kind, settings=said)
        else:
            found = client.reports.create(ids, kind=kind, settings=said)
    emit(found) if as_json else show_report(found)


@in_words
def compare(ids: Two, settings: Settings = None, as_json: Json = False) -> None:
    """Compare the second of two evaluations with the first, task by task, with paired tests."""
    if len(set(ids)) != 2:
        raise typer.BadParameter("name two evaluations")
    with service() as there, Client(there.url, there.token) as client:
        found = client.reports.compare(ids, settings=report_settings(settings))
    emit(found) if as_json else show_report(found)


@in_words
def tables(evaluation: o.Id, table: Table = None, output: Target = None, as_json: Json = False) -> None:
    """List the result tables, or write one to a file."""
    with service() as there, Client(there.url, there.token) as client:
        if table is None:
            found = client.evaluations.tables(evaluation)
            _list(found, as_json)
            return
        target = output or Path(f"{table}.csv")
        format = target.suffix.removeprefix(".")
        if format not in ("csv", "parquet", "json"):
            raise typer.BadParameter(f"{target}: write .csv, .parquet or .json")
        size = client.reports.table(evaluation, table, target, format=format)
    line(f"{target}: {size} bytes")


@in_words
def export(
    ids: Ids,
    output: Zip,
    profile: Profile = "internal",
    alias: Alias = None,
    embargo: Embargo = None,
    secret: Secret = None,
    waive: Waive = None,
    kind: Kind = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Write everything that a reader needs to check the figures into one zip, with a program that does so."""
    said: dict[str, Any] = {"profile": profile, "waivers": waive or (), "names": secret or (), "embargo": embargo or ()}
    said |= {"aliases": dict(pairs(alias)), "kind": kind, "settings": report_settings(settings)}
    with service() as there, Client(there.url, there.token) as client:
        if output.exists():
            raise fail(f"{output} is there already")
        operation = client.exports.create(ids, **said)
        ended = client.operations.wait(operation.id, _tell)
        if ended.state != SUCCEEDED:
            raise _refused(ended)
        size = client.exports.download(ended.id, output)
    emit(ended) if as_json else line(
        f"{output}: {size} bytes of {ended.id}; `python verify.py` in it computes every figure again"
    )


def report_settings(given: list[str] | None) -> dict[str, Any]:
    """Return ``KEY=VALUE`` options as a report's settings. Raises typer.BadParameter."""
    found: dict[str, Any] = {}
    for key, text in pairs(given):
        head, dot, name = key.partition(".")
        if dot and head == "options":
            found.setdefault("options", {})[name] = setting(name, text)
        else:
            found[key] = setting(key, text)
    return found


def _tell(operation: Operation) -> None:
    note(f"{operation.id}: {operation.done}/{operation.total or '?'} {operation.unit}")


def _refused(ended: Operation) -> typer.Exit:
    problem = ended.problem or {}
    for finding in cast("list[dict[str, Any]]", problem.get("findings") or []):
        places = ", ".join(map(str, finding.get("places") or ()))
        note(f"{finding.get('shown')!r} in {places}: --waive {finding.get('name')}")
    return fail(f"{ended.id}: {ended.state}: {problem.get('type', '')}: {problem.get('detail', '')}", FAILED)


def _write(target: Path, data: bytes) -> None:
    with target.open("xb") as file:
        file.write(data)
    line(f"{target}: {len(data)} bytes")


def _list(found: Any, as_json: bool) -> None:
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        out.print(
            plain_table(("table", "one row is", "columns"), [(t["name"], t["text"], len(t["columns"])) for t in found])
        )
        facts({"a file": "workstead eval tables EVALUATION NAME -o FILE.parquet"})
