"""The leaderboard of JobBench as its site reads it: names in the site's own spelling, percent with two decimals."""

from typing import Literal

from service.domain.tasks import Strict


class LeaderboardPart(Strict):
    """One occupation."""

    score: float
    """Points earned."""
    max_score: float | None
    """Points to be had; null where a missing task's are not known."""
    score_pct: float | None
    tasks_evaluated: int
    rubrics_passed: float
    """Means over samples need not be whole."""
    rubrics_total: float | None


class LeaderboardRow(Strict):
    rank: int
    """Equal scores have equal ranks."""
    model: str
    displayName: str
    family: str
    framework: str
    overallScore: float | None
    totalScore: float
    maxScore: float | None
    tasksEvaluated: int
    rubricsPassed: float
    rubricsTotal: float | None
    rubricPassRate: float | None
    categoryBreakdown: dict[str, LeaderboardPart]


class Leaderboard(Strict):
    leaderboard: list[LeaderboardRow]
    totalTasks: int
    totalModels: int
    totalRubrics: float
    totalCriteria: int
    aggregate: Literal["macro", "micro"]
    """What ranks: the paper's mean of tasks, or the site's sum of points."""
    missing: Literal["zero", "exclude", "refuse"]
    plan: str
    notice: str
