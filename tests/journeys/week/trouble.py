"""Wednesday and Thursday: an agent that a stop rule holds, a runaway, the provider's outage, a broken task."""

import time
from collections import Counter
from typing import Any

from tests.journeys.week import office
from tests.journeys.week.beginning import AGENTS, FULL, RUNS, SAMPLES, SCORES, TASKS
from tests.journeys.week.lead import Lead
from workstead.models import Run

BROKEN = "rota"
"""Task whose fixture turns out to be wrong."""


def failing(lead: Lead) -> None:
    """The provider takes a model away: its agent is held before it has burnt all its runs, mended, and goes on."""
    lead.key("lab/pencil", "unknown-model")
    lead.tell("eval", "set", lead.evaluation, "concurrency.agents.drafter=1")
    (hold,) = lead.until("a stop rule holds the drafter", lambda: lead.now.holds)
    assert (hold["reason"], hold["agent"]) == ("stop_rule", "drafter"), hold
    assert hold["detail"].endswith("scaffold_error"), hold
    assert 5 <= hold["bad"] == hold["of"] < TASKS * SAMPLES, hold
    shown = lead.tell("eval", "show", lead.evaluation).out
    assert f"held: drafter: stop_rule: {hold['detail']}" in shown, shown
    actions = [entry["action"] for entry in lead.tell("eval", "log", lead.evaluation, "--json").bodies]
    assert actions[-1] == "hold", actions
    lead.key("lab/pencil", "pencil")
    lead.tell("eval", "release", lead.evaluation, "-a", "drafter")
    lead.until("the drafter works again", lambda: [r for r in lead.of("drafter") if of_most(r)])
    assert lead.now.holds == []


def of_most(run: Run) -> bool:
    return run.verdict.score is not None and run.verdict.score > 0


def runaway(lead: Lead) -> None:
    """An agent that would never end is found by how long it takes, stopped, and what it had by then is graded."""
    lead.provider.add(office.worker(for_ever=True))
    lead.tell("eval", "set", lead.evaluation, "concurrency.agents.worker=1")
    lead.until("the worker looks about", lambda: asked(lead) > 6)
    (run,) = lead.until("it is among the slowest", lambda: slow(lead))
    assert run["phase"] == "running", run
    lead.tell("eval", "hold", lead.evaluation, "-a", "worker", "--reason", "it never ends")
    lead.tell("runs", "stop", run["run_id"], "--mode", "collect")
    ended = lead.client.runs.wait(run["run_id"])
    assert (ended.outcome, ended.ended_because, ended.verdict.fraction) == ("graded", "stopped", FULL), ended
    lead.stopped = ended.id
    lead.provider.add(office.worker())
    lead.tell("eval", "release", lead.evaluation, "-a", "worker")


def slow(lead: Lead) -> list[dict[str, Any]]:
    return [one for one in lead.matrix()["slowest"] if one["agent"] == "worker"]


def asked(lead: Lead) -> int:
    """Return how many tools the worker has used in the run that is under way."""
    return sum(run.progress.tool_calls or 0 for run in lead.of("worker", phase="running"))


def outage(lead: Lead, seconds: float, *, patience: bool) -> None:
    """The provider is away in the middle: runs wait or are held, judges wait, and nobody's score is the provider's doing.

    ``seconds``: at least; ``patience``: until some attempt has lost it, which the run is not to suffer for.
    """
    lead.tell("eval", "set", lead.evaluation, "concurrency.agents.writer=2", "concurrency.agents.drafter=2")
    lead.until("the writer has begun", lambda: [run for run in lead.of("writer") if run.done])
    lead.provider.outage(office.AWAY)
    began = time.monotonic()
    held = lead.until("runs are held", lambda: lead.runs(phase="held"))
    assert {(run.hold or {}).get("reason") for run in held} == {"provider_unavailable"}, held
    assert "open" in lead.tell("models", "list").out
    if patience:
        lead.until("an attempt has lost its patience", lambda: [r for r in lead.runs(phase="held") if r.attempt])
    lead.until("the outage is over", lambda: time.monotonic() - began > seconds, seconds + 60)
    lead.provider.outage(None)
    lead.tell("eval", "watch", lead.evaluation)
    runs = lead.runs()
    assert (len(runs), {run.outcome for run in runs}) == (RUNS, {"graded"})
    attempts = Counter(run.attempt for run in runs)
    assert max(attempts) <= 2, attempts
    assert not patience or attempts[2], attempts
    for label in AGENTS:
        whole = [run for run in lead.of(label) if run.ended_because != "scaffold_error"]
        assert {run.verdict.fraction for run in whole} == {SCORES[label]}, label


def mended(lead: Lead) -> None:
    """What the drafter failed at is made again; the failed runs stay visible and count no more."""
    failed = [run for run in lead.of("drafter") if run.ended_because == "scaffold_error"]
    assert 5 <= len(failed) < TASKS * SAMPLES, [run.ended_because for run in lead.of("drafter")]
    assert {run.verdict.fraction for run in failed} == {0.0}
    lead.tell("eval", "retry", lead.evaluation, "--because", "scaffold_error", "--json")
    lead.redone += len(failed)
    whole = lead.of("drafter")
    assert (len(whole), {run.verdict.fraction for run in whole}) == (TASKS * SAMPLES, {SCORES["drafter"]})


def broken(lead: Lead) -> None:
    """A fixture was wrong: the task's runs leave the tables with the reason, and are made again."""
    of_task = ("--task", f"rows/{BROKEN}", "--reason", "the table named the wrong day")
    found = lead.tell("eval", "invalidate", lead.evaluation, *of_task, "--yes", "--json").body
    gone = len(AGENTS) * SAMPLES
    assert found["runs"] == gone, found
    results = table(lead, "results")
    assert {row["agent"]: (row["counted"], row["missing_tasks"]) for row in results["rows"]} == {
        label: (SAMPLES * (TASKS - 1) - (label == "worker" and not stopped_of(lead, BROKEN)), 0) for label in AGENTS
    }, results
    assert results["excluded"]["invalidated"] == gone + lead.redone, results["excluded"]
    assert results["n"] + sum(results["excluded"].values()) == len(lead.runs())
    lead.tell("eval", "resume", lead.evaluation)
    lead.redone += gone
    again = [run for run in lead.runs(task_id=lead.task(BROKEN)) if run.outcome != "invalidated"]
    assert len(again) == gone
    assert {run.verdict.fraction for run in again} == {*SCORES.values()}


def stopped_of(lead: Lead, key: str) -> bool:
    return lead.client.runs.get(lead.stopped).task.name == f"rows/{key}"


def table(lead: Lead, name: str, *words: str) -> dict[str, Any]:
    """Return a table of the report."""
    report = lead.tell("eval", "report", lead.evaluation, *words, "--json").body
    (found,) = [one for one in report["tables"] if one["name"] == name]
    return dict(found)
