"""What changes a comparison: the lines that stand above every report."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from service.lifecycle.handover.verify_program.means import share
from service.lifecycle.handover.verify_program.reading import Data, Row

FLAGGED = {
    "contamination_suspected": True, "provider_tools_used": True, "policy_changed": True, "assisted": True,
    "overridden": False, "retried": False, "replayed": True, "external": False, "cost_declared": False,
    "usage_unknown": False, "partial_output": False, "output_truncated": True,
}  # fmt: skip
"""Flag → whether one run of it is a warning."""


def validity(x: Data) -> Row:
    """Name → line."""
    lines = {name: flag_line(x, lambda r, n=name: n in (r["flags"] or []), warn) for name, warn in FLAGGED.items()}
    lines["limits_hit"] = limit_line(x)
    lines["alias_drift"] = drift_line(x)
    tasks = [x.tasks[t] for t in x.attempted]
    for name, held, warn in (
        ("disputed_tasks", [t["status"] == "disputed" for t in tasks], True),
        ("suspect_tasks", [t["check"] in ("suspect", "broken") for t in tasks], True),
        ("unchecked_tasks", [t["check"] is None for t in tasks], False),
    ):
        lines[name] = line_of(sum(held), len(tasks), {}, warn and any(held))
    return {**lines, **judge_lines(x)}


def line_of(count: int, of: int, by_agent: Row, warning: bool) -> Row:
    return {"count": count, "of": of, "by_agent": by_agent, "warning": warning}


def flag_line(x: Data, holds: Callable[[Row], bool], warn: bool) -> Row:
    counts = Counter(x.agents[r["agent_id"]]["label"] for r in x.runs if holds(r))
    total = sum(counts.values())
    return line_of(total, len(x.runs), dict(counts), warn and total > 0)


def limit_line(x: Data) -> Row:
    line = flag_line(x, lambda r: r["ended_because"] in ("memory_limit", "disk_limit", "output_limit"), warn=False)
    runs = Counter(x.agents[r["agent_id"]]["label"] for r in x.runs)
    line["warning"] = any(n > 0.02 * runs[label] for label, n in line["by_agent"].items())
    return line


def drift_line(x: Data) -> Row:
    ids: dict[str, set[str]] = defaultdict(set)
    for row in x.tables["model_requests"]:
        if row["reported_model"] is not None and row["model"] is not None:
            ids[row["model"]].add(row["reported_model"])
    many = {model: len(found) for model, found in ids.items() if len(found) > 1}
    return line_of(len(many), len(ids), many, bool(many))


def judge_lines(x: Data) -> Row:
    votes = x.tables["votes"]
    if not votes:
        return {}
    found: Row = {"invalid_votes": line_of(sum(v["state"] != "valid" for v in votes), len(votes), {}, warning=False)}
    said: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for vote in votes:
        answers = [vote["content"].get(name) for name in ("rubric_passed", "pay_worthy", "choice")]
        answer = next((a for a in answers if a is not None), None)
        if vote["state"] == "valid" and answer is not None:
            said[vote["grading_id"], vote["item"]].append(answer)
    pairs = [(a, b) for labels in said.values() for k, a in enumerate(labels) for b in labels[k + 1 :]]
    agreed = sum(a == b for a, b in pairs)
    if pairs:
        rate = share(agreed, len(pairs))
        text = f"pairs of judges' votes on one item that agree ({rate:.1%})"
        found["judge_agreement"] = {**line_of(agreed, len(pairs), {}, warning=rate < 0.8), "text": text}
    return found
