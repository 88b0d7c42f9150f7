"""What PayWorthy's figures rest on: jobs of an agent with their labels, and what was forecast of them.

A job's label is that of the agent's first counted sample: full score is accepted. Further samples tell of chance alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from service.domain.forecasts import Variant
from service.domain.tasks import Strict
from service.reporting.drawing import Bools, Floats
from service.reporting.reports.choices import Name
from service.reporting.reports.data import Data, Run

UNKNOWN = "unknown"
DRAWS = 2000
"""Of every bootstrap in this report, as the paper has them."""
Shares = Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1, max_length=50)]


class PayWorthyOptions(Strict):
    base_agent: Name | None = None
    """Label or id: whom ``tool_agent`` is compared with."""
    tool_agent: Name | None = None
    category_facet: Name = "category"
    pay_facet: Name = "pay_type"
    needs_facet: Name = "needs"
    top_shares: Shares = Field(default_factory=lambda: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    only_before: bool = False
    """Leave out forecasts that were not recorded before the agent began on the task."""
    defined_share: float | None = Field(default=None, gt=0, le=1)
    """Only jobs that this share of their forecasts calls an artefact (the paper: 4 of 7 forecasters)."""
    annotation_facets: list[Name] = Field(default_factory=list[str], max_length=16)
    """Facets that were annotated, ``name@version`` or others: beside the forecasters' own annotations."""
    embedding: Name | None = None
    """Model of the texts' embeddings; null: the one that there is, the first by name of several."""
    corpus_shares: dict[Name, float] = Field(default_factory=dict[str, float], max_length=200)
    """Category → share of the corpus, for a rate that is reweighted to it."""
    families: dict[Name, Name] = Field(default_factory=dict[str, str], max_length=500)
    """Model or forecaster's key → family, for the residual of a forecaster's own family."""


@dataclass(frozen=True)
class Jobs:
    """One agent's."""

    data: Data
    agent_id: str
    runs: list[Run]
    """One for each job, in the order of the tasks."""

    @property
    def label(self) -> str:
        return self.data.agents[self.agent_id].label

    @cached_property
    def tasks(self) -> list[str]:
        return [run.task_id for run in self.runs]

    @cached_property
    def accepted(self) -> Bools:
        return np.asarray([run.solved for run in self.runs], dtype=np.bool_)

    @cached_property
    def worth(self) -> Floats:
        """Dollars; nan where nobody knows."""
        prices = [self.data.tasks[task].price_usd for task in self.tasks]
        return np.asarray([np.nan if price is None else price for price in prices], dtype=np.float64)

    def groups(self, facet: str) -> list[str]:
        """Return the first value of each job's facet."""
        return [next(iter(self.data.tasks[task].values(facet)), UNKNOWN) for task in self.tasks]

    def only(self, places: Sequence[int]) -> "Jobs":
        return Jobs(self.data, self.agent_id, [self.runs[place] for place in places])


def jobs_of(data: Data) -> list[Jobs]:
    """Return every agent's jobs, of agents with a counted run."""
    found: list[Jobs] = []
    for agent_id, runs in data.by_agent.items():
        first: dict[str, Run] = {}
        for run in sorted(runs, key=lambda r: (r.sample, r.run_id)):
            first.setdefault(run.task_id, run)
        if first:
            found.append(Jobs(data, agent_id, [first[task] for task in sorted(first)]))
    return found


Who = tuple[str, str]
"""Forecaster and prompt."""


@dataclass(frozen=True)
class Forecasts:
    """What was forecast of one agent's jobs."""

    jobs: Jobs
    scores: dict[Who, Floats]
    """p of each job; nan where there is none."""
    rows: pl.DataFrame
    """All rows about these jobs, excluded and failed ones too."""
    left: dict[str, int]
    """Why → forecasts that no figure has."""

    def of(self, prompt: str) -> dict[str, Floats]:
        """Return forecaster → p, of one prompt."""
        return {who: p for (who, key), p in self.scores.items() if key == prompt}

    @property
    def prompts(self) -> list[str]:
        """Return the prompts, variants in their order and what is none of them last."""
        order = [variant.value for variant in Variant]
        known = {prompt for _, prompt in self.scores}
        return sorted(known, key=lambda key: (_rank(key, order), key))


def forecasts_of(jobs: Jobs, options: PayWorthyOptions) -> Forecasts:
    """Return the forecasts about the agent, or about none in particular; of two of the same job the earlier one counts."""
    about = pl.col("agent_id").is_null() | (pl.col("agent_id") == jobs.agent_id)
    rows = jobs.data.tables["forecasts"].filter(about & pl.col("task_id").is_in(jobs.tasks))
    left: Counter[str] = Counter()
    for state in ("excluded", "failed"):
        left[state] += rows.filter(pl.col("state") == state).height
    good = rows.filter(pl.col("state") == "ok").sort("made_at", "forecast_id")
    if options.only_before:
        before = good.filter(pl.col("made_before_attempt").fill_null(value=True))
        left["after the attempt"] += good.height - before.height
        good = before
    once = good.unique(["forecaster", "prompt", "task_id"], keep="first", maintain_order=True)
    left["forecast again"] += good.height - once.height
    jobs, dropped = _defined(jobs, once, options.defined_share)
    left["of jobs without a defined deliverable"] += dropped
    place = {task: n for n, task in enumerate(jobs.tasks)}
    scores: defaultdict[Who, Floats] = defaultdict(lambda: np.full(len(place), np.nan))
    for who, prompt, task, p in once.select("forecaster", "prompt", "task_id", "p_hat").iter_rows():
        if task in place:
            scores[who, prompt][place[task]] = p
    kept = {reason: n for reason, n in sorted(left.items()) if n}
    return Forecasts(jobs, dict(sorted(scores.items())), rows, kept)


def _defined(jobs: Jobs, rows: pl.DataFrame, share: float | None) -> tuple[Jobs, int]:
    """Return the jobs whose forecasts call the deliverable an artefact often enough, and how many forecasts go."""
    if share is None:
        return jobs, 0
    said = rows.filter(pl.col("deliverable_modality").is_not_null()).group_by("task_id")
    means: Mapping[str, float] = dict(said.agg(pl.col("deliverable_modality").mean()).iter_rows())
    kept = [n for n, task in enumerate(jobs.tasks) if means.get(task, 0.0) >= share]
    left = jobs.only(kept)
    return left, rows.filter(~pl.col("task_id").is_in(left.tasks)).height


def _rank(prompt: str, order: Sequence[str]) -> int:
    variant = prompt.partition("+")[0].partition("@")[0]
    return order.index(variant) if variant in order else len(order)
