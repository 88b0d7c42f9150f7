"""Two evaluations, or one agent and all others, side by side: paired by task, with tests."""

from collections.abc import Mapping, Sequence

from service.domain.errors import Invalid
from service.domain.reports import ReportColumn, ReportHeader, ReportSettings, ReportTable
from service.domain.tasks import Strict
from service.reporting.frames import Tables
from service.reporting.paired_tests import Paired, paired
from service.reporting.reports.data import Data, Run, by_task, gather
from service.reporting.reports.making import AGENT, BOOTSTRAP, Row, bounds, common, count, fraction, options, table

TESTS = (
    "Score: mean over samples of `counted`, paired by task. Sign test: exact, two-sided, ties left out. Permutation test: signs of "
    "the differences at random (Fisher 1935), two-sided. No p is corrected for the number of comparisons."
)


class ComparisonOptions(Strict):
    """None."""


def comparison(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the second evaluation of the header beside the first, agents by their labels.

    Raises Invalid ``two_evaluations`` unless there are two.
    """
    options(ComparisonOptions, settings.options)
    if len(header.evaluations) != 2:
        raise Invalid("two_evaluations", "a comparison is of two evaluations")
    data = gather(tables, header, settings)
    return [by_agent(data), by_task_and_agent(data)]


def by_agent(data: Data) -> ReportTable:
    sides = [_scores(data, evaluation) for evaluation in data.header.evaluations]
    rows = [{"agent": label, **_row(data, sides[0][label], sides[1][label])} for label in _both(sides)]
    columns = [AGENT, *_columns("First", "Second")]
    left = _alone(sides)
    notes = [f"Only in one of the two: {', '.join(left[:50])}."] if left else []
    method = f"Tasks that the agent did in both evaluations. {TESTS} {BOOTSTRAP}"
    settings = common(data, first=data.header.evaluations[0], second=data.header.evaluations[1])
    title = "Two evaluations"
    return table(data, "comparison", title, columns, rows, method=method, settings=settings, notes=notes)


def by_task_and_agent(data: Data) -> ReportTable:
    """Return the tasks on which an agent's two scores differ, the largest differences first."""
    sides = [_scores(data, evaluation) for evaluation in data.header.evaluations]
    rows: list[Row] = []
    for label in _both(sides):
        before, after = sides[0][label], sides[1][label]
        rows.extend(
            {
                "agent": label,
                "task": data.tasks[task].item_key or data.tasks[task].name,
                "before": before[task],
                "after": after[task],
                "difference": after[task] - before[task],
            }
            for task in sorted(before.keys() & after.keys())
            if before[task] != after[task]
        )
    rows.sort(key=lambda row: (-abs(float(row["difference"] or 0)), str(row["agent"]), str(row["task"])))
    columns = [
        AGENT,
        ReportColumn(name="task", title="Task"),
        fraction("before", "First"),
        fraction("after", "Second"),
        fraction("difference", "Difference"),
    ]
    shown = rows[:1000]
    notes = [f"{len(rows) - len(shown)} further differences are not shown."] if len(rows) > len(shown) else []
    method = "Tasks of both evaluations with different scores of one agent."
    return table(data, "changed_tasks", "Tasks that changed", columns, shown, method=method, notes=notes)


def against_reference(data: Data) -> list[ReportTable]:
    """Return every other agent beside the reference agent; nothing where none is named. Raises Invalid ``unknown_agent``."""
    name = data.settings.reference_agent
    if name is None:
        return []
    reference = data.chosen(name)
    if reference is None:
        raise Invalid("unknown_agent", f"no agent {name!r} in these runs")
    base = _means(data.by_agent[reference.agent_id])
    rows = [
        {"agent": agent.label, **_row(data, base, _means(data.by_agent[agent_id]))}
        for agent_id, agent in data.agents.items()
        if agent_id != reference.agent_id
    ]
    columns = [AGENT, *_columns(reference.label, "Agent")]
    method = f"Tasks that both agents did. {TESTS} {BOOTSTRAP}"
    settings = common(data, reference=reference.label)
    title = f"Against {reference.label}"
    return [table(data, "against_reference", title, columns, rows, method=method, settings=settings)]


def _columns(first: str, second: str) -> list[ReportColumn]:
    return [
        count("tasks", "Tasks of both"),
        fraction("before", first),
        fraction("after", second),
        fraction("difference", "Difference", interval=True),
        count("better", "Better"),
        count("worse", "Worse"),
        ReportColumn(name="sign_p", title="p, sign test"),
        ReportColumn(name="permutation_p", title="p, permutation test"),
    ]


def _row(data: Data, before: Mapping[str, float], after: Mapping[str, float]) -> Row:
    both = sorted(before.keys() & after.keys())
    first, second = [before[t] for t in both], [after[t] for t in both]
    found: Paired = paired(first, second, data.seed, data.settings.draws)
    return {
        "tasks": found.tasks,
        "before": sum(first) / len(both) if both else None,
        "after": sum(second) / len(both) if both else None,
        "difference": found.mean,
        **bounds("difference", found.interval),
        "better": found.better,
        "worse": found.worse,
        "sign_p": found.sign_p,
        "permutation_p": found.permutation_p,
    }


def _scores(data: Data, evaluation: str) -> dict[str, dict[str, float]]:
    found = {a.label: [r for r in data.by_agent[i] if r.evaluation_id == evaluation] for i, a in data.agents.items()}
    return {label: _means(runs) for label, runs in found.items() if runs}


def _means(runs: Sequence[Run]) -> dict[str, float]:
    return by_task(runs, lambda r: r.value)


def _both(sides: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(sides[0].keys() & sides[1].keys())


def _alone(sides: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(sides[0].keys() ^ sides[1].keys())
