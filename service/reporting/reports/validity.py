"""What changes a comparison, in every report (NEEDS B7, E 2): each line with how many runs of how many, and of whom."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from service.domain.benchmarks import ItemStatus
from service.domain.reports import ReportHeader, ReportSettings, ValidityLine
from service.domain.run_states import EndedBecause, Flag
from service.reporting.agreement import pairwise_agreement
from service.reporting.frames import Tables
from service.reporting.reports.data import Data, Run, gather

LIMIT_ENDS = frozenset({EndedBecause.MEMORY_LIMIT, EndedBecause.DISK_LIMIT, EndedBecause.OUTPUT_LIMIT})
MOST_LIMIT_ENDS = 0.02
"""Share of an agent's runs above which a limit of ours may look like weakness of theirs."""
LEAST_AGREEMENT = 0.8
"""Of judges' votes on one item; below it a warning is due."""
FLAGS: Mapping[Flag, tuple[str, bool]] = {
    Flag.CONTAMINATION_SUSPECTED: ("runs that met marks of their own answer key", True),
    Flag.PROVIDER_TOOLS_USED: ("runs in which the provider's own tools (its search, its sandbox) were used", True),
    Flag.POLICY_CHANGED: ("runs under another network policy than the task's", True),
    Flag.ASSISTED: ("runs in which a person was in the sandbox", True),
    Flag.OVERRIDDEN: ("runs whose verdict is a person's in a grader's place", False),
    Flag.RETRIED: ("runs with a further attempt after an infrastructure failure", False),
    Flag.REPLAYED: ("runs whose models answered from recordings", True),
    Flag.EXTERNAL: ("runs delivered by upload: nothing of the work was seen", False),
    Flag.COST_DECLARED: ("runs whose cost is declared, not measured", False),
    Flag.USAGE_UNKNOWN: ("runs with a model request whose tokens are not known", False),
    Flag.PARTIAL_OUTPUT: ("runs that left partial output when a limit ended them", False),
    Flag.OUTPUT_TRUNCATED: ("runs whose deliverable was cut at a size limit", True),
}
"""Flag → in words, whether any run at all is a warning."""


def validity(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ValidityLine]:
    """Return the lines; those about flags come always, so that a 0 is seen to be one."""
    data = gather(tables, header, settings)
    lines = [_flagged(data, flag, text, warn) for flag, (text, warn) in FLAGS.items()]
    return [*lines, limits(data), drift(data), *doubtful(data), *judges(data)]


def _flagged(data: Data, flag: Flag, text: str, warn: bool) -> ValidityLine:
    return _line(data, str(flag), text, lambda r: flag in r.flags, warn)


def _line(data: Data, name: str, text: str, holds: Callable[[Run], bool], warn: bool) -> ValidityLine:
    by_agent = Counter(data.agents[r.agent_id].label for r in data.runs if holds(r))
    return ValidityLine(
        name=name,
        text=text,
        count=by_agent.total(),
        of=len(data.runs),
        by_agent=dict(sorted(by_agent.items())),
        warning=warn and by_agent.total() > 0,
    )


def limits(data: Data) -> ValidityLine:
    """Count runs that a limit of memory, disk or output ended; a warning where it is more than 2 % of an agent's."""
    line = _line(data, "limits_hit", "runs that a limit of memory, disk or output ended", _limited, warn=False)
    runs = Counter(data.agents[r.agent_id].label for r in data.runs)
    over = [label for label, n in line.by_agent.items() if n > MOST_LIMIT_ENDS * runs[label]]
    return line.model_copy(update={"warning": bool(over)})


def _limited(run: Run) -> bool:
    return run.ended_because in LIMIT_ENDS


def drift(data: Data) -> ValidityLine:
    """Count models that answered under more than one id while these runs were made: the model may have changed."""
    asked = data.tables["model_requests"].filter(pl.col("reported_model").is_not_null(), pl.col("model").is_not_null())
    ids = asked.group_by("model").agg(pl.col("reported_model").n_unique().alias("ids")).sort("model")
    many = {str(model): int(n) for model, n in ids.select("model", "ids").iter_rows() if n > 1}
    text = "models that answered under more than one id; by model: how many ids"
    return ValidityLine(
        name="alias_drift", text=text, count=len(many), of=ids.height, by_agent=many, warning=bool(many)
    )


def doubtful(data: Data) -> list[ValidityLine]:
    tasks = [data.tasks[t] for t in data.attempted]
    disputed = sum(t.status == ItemStatus.DISPUTED for t in tasks)
    suspect = sum(t.check in {"suspect", "broken"} for t in tasks)
    unchecked = sum(t.check is None for t in tasks)
    n = len(tasks)
    return [
        ValidityLine(
            name="disputed_tasks", text="tasks with disputed answers", count=disputed, of=n, warning=disputed > 0
        ),
        ValidityLine(
            name="suspect_tasks",
            text="tasks that the benchmark's check found suspect or broken",
            count=suspect,
            of=n,
            warning=suspect > 0,
        ),
        ValidityLine(name="unchecked_tasks", text="tasks that no check has looked at", count=unchecked, of=n),
    ]


def judges(data: Data) -> list[ValidityLine]:
    """Return invalid votes, and how far valid votes of one item agree; nothing where no judge voted."""
    votes = data.tables["votes"]
    if votes.is_empty():
        return []
    invalid = votes.filter(pl.col("state") != "valid").height
    said = [labels for labels in _labels(votes) if len(labels) > 1]
    agreed = pairwise_agreement(said)
    found = [
        ValidityLine(name="invalid_votes", text="judges' votes that were no answer", count=invalid, of=votes.height)
    ]
    if agreed is not None:
        pairs = sum(len(labels) * (len(labels) - 1) // 2 for labels in said)
        text = f"pairs of judges' votes on one item that agree ({agreed:.1%})"
        low = agreed < LEAST_AGREEMENT
        found.append(
            ValidityLine(name="judge_agreement", text=text, count=round(agreed * pairs), of=pairs, warning=low)
        )
    return found


def _labels(votes: pl.DataFrame) -> Sequence[Sequence[str]]:
    """Return the overall answers to each item: whether a rubric passed, work is worth paying for, whose work is better."""
    answers = [pl.col("content").str.json_path_match(f"$.{name}") for name in ("rubric_passed", "pay_worthy", "choice")]
    said = votes.filter(pl.col("state") == "valid").select("grading_id", "item", pl.coalesce(answers).alias("said"))
    return said.drop_nulls("said").group_by("grading_id", "item").agg("said")["said"].to_list()
