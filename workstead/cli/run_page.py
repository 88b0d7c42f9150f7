"""``workstead runs show``: all there is to say about one run."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from workstead.cli.common import RunId, emit, facts, in_words, line
from workstead.cli.describe import hold, seconds, verdict
from workstead.cli.options import Json
from workstead.models import Attempt, Grading, Run
from workstead.sync import Client
from workstead.terminal import one_line

MAX_CRITERIA = 200
MAX_FILES = 200


@in_words
def show(run_id: RunId, as_json: Json = False) -> None:
    """Show a run: phase or what holds it, verdict with its criteria, attempts, deliverable.

    With --json one object: run, attempts, gradings, artifacts.
    """
    with Client() as client:
        run = client.runs.get(run_id)
        attempts, gradings = client.runs.attempts(run_id), client.runs.gradings(run_id)
        artifacts = list(client.runs.artifacts(run_id))
    if as_json:
        parts = {"attempts": attempts, "gradings": gradings, "artifacts": artifacts}
        dumped = {name: [p.model_dump(mode="json") for p in items] for name, items in parts.items()}
        emit({"run": run.model_dump(mode="json"), **dumped})
        return
    _facts(run)
    _attempts(attempts)
    for grading in gradings:
        _grading(grading)
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


def _attempts(attempts: Sequence[Attempt]) -> None:
    for a in attempts:
        said = [a.state, a.ended_because, a.host_id, a.runtime, *_log_sizes(a)]
        line(f"attempt {a.n}: {' · '.join(one_line(s, 80) for s in said if s)}", "bold" if a is attempts[-1] else "dim")


def _log_sizes(attempt: Attempt) -> Iterable[str]:
    return (f"{stream} {log.get('total_bytes')} bytes" for stream, log in attempt.logs.items())


def _grading(grading: Grading) -> None:
    counts = "" if grading.primary else ", not the primary plan's"
    said = " ".join(part for part in (grading.state, _points(grading), grading.cause) if part)
    line(f"grading {grading.id} {grading.method} (round {grading.round}{counts}): {said}", "bold")
    criteria = grading.criteria or []
    for c in criteria[:MAX_CRITERIA]:
        line(f"  {one_line(str(c.get('id')), 60)}: {_of(c)} {one_line(_why(c), 200)}".rstrip())
    _more(len(criteria), MAX_CRITERIA, "--json has all")


def _points(grading: Grading) -> str:
    return "" if grading.score is None or grading.max_score is None else f"{grading.score:g}/{grading.max_score:g}"


def _of(criterion: dict[str, Any]) -> str:
    return f"{criterion.get('score')}/{criterion.get('max_score')}"


def _why(criterion: dict[str, Any]) -> str:
    return " ".join(str(criterion[key]) for key in ("cause", "reason") if criterion.get(key))


def _problems(problems: Sequence[Any] | None) -> str:
    """Say what the integrity report has against a file."""
    kinds = [str(cast("dict[str, Any]", p).get("type") if isinstance(p, dict) else p) for p in problems or ()]
    return f"  [{one_line(', '.join(kinds), 200)}]" if kinds else ""


def _more(found: int, shown: int, where: str) -> None:
    if found > shown:
        line(f"  … {found - shown} more; {where}", "dim")
