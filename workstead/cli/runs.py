"""``workstead runs …`` and ``workstead artifacts …``."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from workstead.cli.common import RunId, fail, in_words, line, out
from workstead.cli.describe import seconds, verdict
from workstead.cli.fetch import below
from workstead.cli.tables import runs_table
from workstead.cli.watch import Watched, print_event
from workstead.models import Run
from workstead.sync import Client
from workstead.terminal import one_line

runs_app = typer.Typer(help="Look at runs and stop them.", no_args_is_help=True)
artifacts_app = typer.Typer(help="Fetch what runs delivered.", no_args_is_help=True)

Phase = Annotated[str | None, typer.Option(help="Only runs in this phase")]
Outcome = Annotated[str | None, typer.Option(help="Only runs with this outcome")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Most runs shown")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per line")]
Mode = Annotated[
    str, typer.Option(help="finish: deadline now + grace; collect: kill and grade; discard: kill and cancel")
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Until the run is done")]
After = Annotated[int, typer.Option(min=0, help="Only events with a higher number")]
ArtifactPath = Annotated[str, typer.Argument(help="Path as listed", show_default=False)]
Target = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: the path's own name here")]


def _json(item: Run | dict[str, object]) -> None:
    body = item.model_dump(mode="json") if isinstance(item, Run) else item
    out.file.write(json.dumps(body, ensure_ascii=True) + "\n")


@runs_app.command("list")
@in_words
def list_runs(phase: Phase = None, outcome: Outcome = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List runs, newest first."""
    filters = {k: v for k, v in (("phase", phase), ("outcome", outcome)) if v}
    with Client() as client:
        runs = list(client.runs.list(filters, limit=limit))
    if as_json:
        for run in runs:
            _json(run)
    else:
        out.print(runs_table(runs))


@runs_app.command()
@in_words
def show(run_id: RunId, as_json: Json = False) -> None:
    """Show a run, its gradings and what it delivered."""
    with Client() as client:
        run = client.runs.get(run_id)
        if as_json:
            _json(run)
            return
        _facts(run)
        for grading in client.runs.gradings(run_id):
            line(f"grading {grading.method} (round {grading.round}): {grading.state} {grading.cause or ''}", "bold")
            for c in grading.criteria or []:
                line(f"  {c.get('id')}: {c.get('score')}/{c.get('max_score')} {c.get('reason') or ''}")
        for artifact in client.runs.artifacts(run_id):
            line(f"{artifact.size_bytes:>12} {artifact.kind:<10} {artifact.path}")


def _facts(run: Run) -> None:
    facts = {
        "run": run.id,
        "task": run.task.name,
        "agent": run.agent.label,
        "sample, attempt": f"{run.sample}, {run.attempt}",
        "phase": " · ".join(p for p in (run.phase, run.outcome, run.ended_because) if p),
        "verdict": verdict(run),
        "queue, provision, wall": ", ".join(seconds(s) for s in (run.queue_s, run.provision_s, run.wall_s)),
        "flags": ", ".join(run.flags) or "none",
    }
    for key, value in facts.items():
        out.print(Text(f"{key:<24}", style="dim").append(one_line(value, 200), style="default"))


@runs_app.command()
@in_words
def stop(run_id: RunId, mode: Mode = "collect") -> None:
    """Stop a run."""
    with Client() as client:
        run = client.runs.stop(run_id, mode)
    line(f"{run.id}: {run.phase}")


@runs_app.command()
@in_words
def events(run_id: RunId, follow: Follow = False, after: After = 0) -> None:
    """Print a run's events; with --follow as they come, to the end."""
    with Client() as client:
        watched = Watched(client.runs.get(run_id))
        if follow:
            for event in client.runs.events(run_id, after=after):
                print_event(watched, event)
            return
        while page := client.runs.events_page(run_id, after=after):
            for event in page:
                print_event(watched, event)
            after = page[-1].seq


@artifacts_app.command("list")
@in_words
def list_artifacts(run_id: RunId) -> None:
    """List the entries of a run's deliverable."""
    with Client() as client:
        for a in client.runs.artifacts(run_id):
            line(f"{a.size_bytes:>12} {a.kind:<18} {a.path}")


@artifacts_app.command("get")
@in_words
def get_artifact(run_id: RunId, path: ArtifactPath, output: Target = None) -> None:
    """Download one file of a run's deliverable; never over an existing file."""
    target = output or below(Path(), path.rpartition("/")[2])
    if target.exists():
        raise fail(f"{target} exists")
    with Client() as client:
        size = client.runs.download(run_id, path, target)
    line(f"{target}: {size} bytes")
