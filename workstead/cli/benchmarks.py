"""``workstead benchmarks …``: import, list, show, card, check; what is made of one is in ``benchmark_parts``."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.benchmark_card import show_card
from workstead.cli.benchmark_parts import derive, embed, list_embeddings
from workstead.cli.checking import CheckOrder, check_benchmark
from workstead.cli.checking_report import exit_code, show_checks
from workstead.cli.common import FAILED, emit, facts, fail, in_words, labels_of, line, out
from workstead.cli.import_works import grade_works
from workstead.cli.importing import progress, read_source, reasons, show_validation, validation, write_report
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import Show, note
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.registry import IMPORTERS, importer_for
from workstead.models import Benchmark
from workstead.sync import Client

benchmarks_app = typer.Typer(help="Sets of tasks: import, look at, check, take parts of.", no_args_is_help=True)

Kind = Annotated[str, typer.Argument(help=f"Importer: {', '.join(sorted(IMPORTERS))}", show_default=False)]
Source = Annotated[Path, typer.Argument(help="File or folder of the source", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Name of the benchmark; default: the importer's own")]
Version = Annotated[str | None, typer.Option(help="Default: from the revision, else from the content")]
Options = Annotated[list[str] | None, typer.Option("--option", "-O", help="KEY=VALUE for the importer; repeatable")]
Deny = Annotated[Path | None, typer.Option(help="File with hosts that publish the answers, one a line")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and report only; needs no service")]
Report = Annotated[Path | None, typer.Option(help="Write what was found of every item to this file, as JSON")]
Deliverables = Annotated[
    str | None,
    typer.Option(metavar="AGENT", help="Grade the works that the source brings, as those of this external agent"),
]
Ref = Annotated[str, typer.Argument(help="NAME, NAME@VERSION or id", show_default=False)]
Include = Annotated[list[str] | None, typer.Option("--include", help="Glob of item keys; repeatable")]
Inputs = Annotated[bool, typer.Option("--inputs/--no-inputs", help="Whether to open the tasks' files in a sandbox")]
Items = Annotated[bool, typer.Option("--items", help="Every item, not only those that are not ok")]


@benchmarks_app.command("import")
@in_words
def import_benchmark(
    kind: Kind,
    source: Source,
    name: Name = None,
    version: Version = None,
    option: Options = None,
    deny: Deny = None,
    dry_run: DryRun = False,
    report: Report = None,
    deliverables: Deliverables = None,
    as_json: Json = False,
) -> None:
    """Read a published benchmark here, say what is wrong with its items, and bring it to the service.

    Only what the service misses travels. Exit code 0 also with quarantined items; 1 if no item is usable.
    """
    settings = {**labels_of(option), **({} if deny is None else {"deny": str(deny)})}
    with read_source(kind, source, ImportOptions(name, version, settings)) as imported:
        if report is not None:
            write_report(imported, report)
        if not as_json:
            show_validation(imported)
        counts = imported.counts()
        if not counts["ok"] + counts["disputed"]:
            raise fail(f"none of the {len(imported.items)} items is usable", FAILED)
        benchmark = None if dry_run else _bring(imported, deliverables)
    if as_json:
        emit({"validation": validation(imported), "benchmark": benchmark and benchmark.model_dump(mode="json")})
    elif benchmark is None:
        line(f"{imported.manifest['name']}@{imported.manifest['version']}: nothing was sent (--dry-run)")
    else:
        _say_made(benchmark, imported)


def _bring(imported: Imported, agent: str | None) -> Benchmark:
    with Client() as client, progress("uploading") as shown:
        bar = shown.task_ids[0]

        def told(done: int, total: int) -> None:
            shown.update(bar, completed=done, total=total)

        benchmark = client.benchmarks.create(imported.manifest, imported.files, on_progress=told)
        if agent is not None:
            for key in grade_works(client, benchmark, imported, agent, told):
                note(f"{key}: its work is not graded, since the service refused its task")
        return benchmark


def _say_made(benchmark: Benchmark, imported: Imported) -> None:
    line(f"{benchmark.name}@{benchmark.version} is {benchmark.id}: {_counts(benchmark)}", "green")
    refused = int(benchmark.counts.get("quarantined", 0)) - imported.counts()["quarantined"]
    if refused > 0:
        note(f"the service refused {refused} more: `workstead benchmarks show {benchmark.name}@{benchmark.version}`")


def _counts(benchmark: Benchmark) -> str:
    return ", ".join(f"{benchmark.counts.get(s, 0)} {s}" for s in ("ok", "disputed", "quarantined"))


@benchmarks_app.command("options")
@in_words
def list_options(kind: Kind) -> None:
    """List what an importer can be told with --option."""
    importer = importer_for(kind)
    if importer is None:
        raise fail(f"no importer is called {kind!r}; there are: {', '.join(sorted(IMPORTERS))}")
    out.print(plain_table(("option", "what it does"), list(importer.settings_help().items())))


@benchmarks_app.command("list")
@in_words
def list_benchmarks(limit: Limit = 50, as_json: Json = False) -> None:
    """List the project's benchmarks, newest first."""
    with Client() as client:
        found = list(client.benchmarks.list({}, limit=limit))
    if as_json:
        for benchmark in found:
            emit(benchmark)
        return
    rows = [(b.name, b.version, b.id, *(b.counts.get(s, 0) for s in ("ok", "disputed", "quarantined"))) for b in found]
    out.print(plain_table(("name", "version", "id", "ok", "disputed", "quarantined"), rows))


@benchmarks_app.command("show")
@in_words
def show_benchmark(ref: Ref, items: Items = False, as_json: Json = False) -> None:
    """Show a benchmark and its items that are not ok."""
    with Client() as client:
        benchmark = client.benchmarks.find(ref)
        found = [i for i in client.benchmarks.items(benchmark.id) if items or i.status != "ok" or _odd(i.checked)]
    if as_json:
        emit({**benchmark.model_dump(mode="json"), "items": [i.model_dump(mode="json") for i in found]})
        return
    head = benchmark.head or {}
    facts(
        {
            "benchmark": f"{benchmark.name}@{benchmark.version}",
            "id": benchmark.id,
            "items": _counts(benchmark),
            "importer": "{importer} {importer_version}".format_map(head.get("source", _NO_SOURCE)),
            "revision": head.get("source", {}).get("revision"),
            "policies": ", ".join(f"{k}={v}" for k, v in head.get("policies", {}).items()),
            "groupings": ", ".join(str(g["name"]) for g in head.get("groupings", [])),
            "notice": head.get("notice"),
        }
    )
    rows = [(i.key, i.status, (i.checked or {}).get("state"), reasons(i.problems), _found(i.checked)) for i in found]
    if rows:
        out.print(plain_table(("item", "status", "check", "problems", "what the check found"), rows))


@benchmarks_app.command("card")
@in_words
def show_benchmark_card(ref: Ref, as_json: Json = False) -> None:
    """Show what a benchmark is made of: counts, facets, file formats, prices, human time."""
    with Client() as client:
        card = client.benchmarks.card(client.benchmarks.find(ref).id)
    if as_json:
        emit(card)
    else:
        show_card(card)


_NO_SOURCE = {"importer": "unknown", "importer_version": ""}


def _odd(checked: dict[str, Any] | None) -> bool:
    return checked is not None and checked.get("state") != "ok"


def _found(checked: dict[str, Any] | None) -> str:
    return "; ".join(str(reason) for reason in (checked or {}).get("reasons", []))


@benchmarks_app.command("check")
@in_words
def check(ref: Ref, include: Include = None, inputs: Inputs = True, as_json: Json = False) -> None:
    """Run the reference solution and an agent that does nothing on every item, and keep what that says of the item.

    The reference must get full marks, nothing must not; files must open, and those that an instruction names must be
    there. Exit code 0: no item is broken; 1: some are.
    """
    show: Show = "live" if out.is_terminal and not as_json else "none"
    checks = asyncio.run(check_benchmark(CheckOrder(ref, tuple(include or ()), inputs, show)))
    if as_json:
        for key, found in checks.items():
            emit({"key": key, **found})
    else:
        show_checks(checks)
    raise typer.Exit(exit_code(checks))


for _name, _command in (("derive", derive), ("embed", embed), ("embeddings", list_embeddings)):
    benchmarks_app.command(_name)(_command)
