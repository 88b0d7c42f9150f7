"""What a reader of a JobBench report may choose."""

from typing import Annotated, Literal

from pydantic import Field

from service.domain.tasks import Strict
from service.reporting.covariates import MOST_BYTES
from service.reporting.reports.choices import BestScaffold, Name


class JobBenchOptions(Strict):
    aggregate: Literal["macro", "micro"] = "macro"
    """What the leaderboard is ranked by: the paper's mean of tasks, or the site's Σ earned / Σ possible."""
    best_scaffold: BestScaffold | None = None
    covariates: Annotated[str, Field(max_length=MOST_BYTES)] | None = None
    """CSV with a heading: value of ``covariate_facet``, number."""
    covariate_facet: Name = "occupation"
    occupation_facet: Name = "occupation"
    """Rows of the leaderboard's breakdown."""
    split_facet: Name = "split"
    reference_evaluation: Name | None = None
    """Id: complexity is also given as a ratio to that evaluation's runs."""
