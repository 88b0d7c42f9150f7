"""``workstead runs show``: all there is to say about one run."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from workstead.cli.common import RunId, emit, facts, in_words, line
from workstead.cli.describe import hold, seconds, verdict
from workstead.cli.options import Json
from workstead.models import Attempt, Criterion, Grading, Run
from workstead.models_contamination import Contamination
from workstead.sync import Client
from workstead.terminal import one_line

MAX_FILES = 200
SUSPECTED = "contamination_suspected"

Every = Annotated[bool, typer.Option("--criteria", help="Every criterion, not only the first 100 of a grading")]


@in_words
def show(run_id: RunId, every: Every = False, as_json: Json = False) -> None:
    """Show a run: phase or what holds it, verdict with its criteria, attempts, deliverable.

    With --json one object: run, attempts, gradings, artifacts.
    """
    with Client() as client:
        run = client.runs.get(run_id)
        attempts, gradings = client.runs.attempts(run_id), client.runs.gradings(run_id)
        criteria = {g.id: list(client.gradings.criteria(g.id)) if every else g.criteria for g in gradings}
        artifacts = list(client.runs.artifacts(run_id))
        suspected = client.runs.contamination(run_id) if SUSPECTED in run.flags and not as_json else None
    if as_json:
        gradings = [g.model_copy(update={"criteria": criteria[g.id]}) for g in gradings]
        parts = {"attempts": attempts, "gradings": gradings, "artifacts": artifacts}
        dumped = {name: [p.model_dump(mode="json") for p in items] for name, items in parts.items()}
        emit({"run": run.model_dump(mode="json"), **dumped})
        return
    _facts(run)
    if suspected is not None:
        _suspicion(suspected)
    _attempts(attempts)
    for grading in gradings:
        _grading(grading, criteria[grading.id])
    line(f"deliverable: {run.deliverable.files} files, {run.deliverable.bytes} bytes", "bold")
    for artifact in artifacts[:MAX_FILES]:
        line(
            f"{artifact.size_bytes:>12} {artifact.kind:<10} {one_line(artifact.path, 300)}{_problems(artifact.problems)}"
        )
    _more(len(artifacts), MAX_FILES, "`workstead artifacts list` lists all")


def _facts(run: Run) -> None:
    facts(
        {
            "run": run.id,
            "task": run.task.name,
            "agent": run.agent.label,
            "sample, attempt": f"{run.sample}, {run.attempt}",
            "phase": " · ".join(p for p in (run.phase, run.outcome, run.ended_because) if p),
            "held": hold(run),
            "verdict": verdict(run),
            "queue, provision, wall": ", ".join(seconds(s) for s in (run.queue_s, run.provision_s, run.wall_s)),
            "flags": ", ".join(run.flags) or "none",
            "labels": ", ".join(f"{k}={v}" for k, v in run.labels.items()),
        }
    )


def _suspicion(found: Contamination) -> None:
    """Say where the run met its own answer key."""
    for hit in found.hits[:10]:
        said = [hit.kind, hit.source, f"in {hit.where}", hit.excerpt and f"“{hit.excerpt}”"]
        line("contamination: " + " ".join(one_line(s, 200) for s in said if s), "red")
    _more(len(found.hits), 10, "GET /v1/runs/ID/contamination has all")


def _attempts(attempts: Sequence[Attempt]) -> None:
    for a in attempts:
        said = [a.state, a.ended_because, a.host_id, a.runtime, *_log_sizes(a)]
        line(f"attempt {a.n}: {' · '.join(one_line(s, 80) for s in said if s)}", "bold" if a is attempts[-1] else "dim")


def _log_sizes(attempt: Attempt) -> Iterable[str]:
    return (f"{stream} {log.get('total_bytes')} bytes" for stream, log in attempt.logs.items())


def _grading(grading: Grading, criteria: Sequence[Criterion]) -> None:
    counts = "" if grading.primary else ", not the primary plan's"
    said = " ".join(part for part in (grading.state, _points(grading), grading.cause) if part)
    line(f"grading {grading.id} {grading.method} (round {grading.round}{counts}): {said}", "bold")
    for c in criteria:
        why = " ".join(part for part in (c.cause, c.reason) if part)
        line(f"  {one_line(c.id, 60)}: {_of(c)} {one_line(why, 200)}".rstrip())
    _more(grading.criteria_total or 0, len(criteria), "--criteria shows all")


def _points(grading: Grading) -> str:
    return "" if grading.score is None or grading.max_score is None else f"{grading.score:g}/{grading.max_score:g}"


def _of(criterion: Criterion) -> str:
    if criterion.score is None or criterion.max_score is None:
        return {True: "passed", False: "not passed", None: "not decided"}[criterion.passed]
    return f"{criterion.score:g}/{criterion.max_score:g}"


def _problems(problems: Sequence[str] | None) -> str:
    """Say what the integrity report has against a file."""
    return f"  [{one_line(', '.join(problems), 200)}]" if problems else ""


def _more(found: int, shown: int, where: str) -> None:
    if found > shown:
        line(f"  … {found - shown} more; {where}", "dim")
