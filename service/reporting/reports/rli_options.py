"""What a reader of an RLI report may choose; the paper leaves the first three open (facts, section 8)."""

from typing import Literal

from pydantic import Field

from service.domain.preferences import Combination
from service.domain.tasks import Strict
from service.reporting.bradley_terry import Weights
from service.reporting.reports.choices import BestScaffold

HumanCoding = Literal["majority", "mean", "accept"]
Source = Literal["people", "judges"]


class RliOptions(Strict):
    human_edge_coding: HumanCoding = "majority"
    """What the ratings of one project give the human: 1 for rating 1, 0.5 for 2, 0 for 3, then their strict majority and 0.5
    without one (``majority``) or their ``mean``; ``accept``: 1 where the project was rejected, 0 where it was accepted."""
    human_edges: Literal["ratings", "preferences", "none"] = "ratings"
    """``ratings``: out of acceptance against the reference; ``preferences``: out of pairs with the reference."""
    smoothing: float = Field(default=0.1, ge=0, le=100)
    """Comparisons that each edge gets on top, half a win each way."""
    weights: Weights = "equal"
    elo_draws: int = Field(default=100, ge=10, le=2_000)
    preferences: Source = "people"
    """Whose preferences between agents; ``judges`` are the method ``pairwise``."""
    combination: Combination = Combination.COMPLETION_THEN_QUALITY
    """How the two scales of an opinion are one choice where agreement is counted."""
    best_scaffold: BestScaffold | None = None
