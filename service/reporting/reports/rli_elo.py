"""RLI's Elo: whose work is preferred, people at 1000 (Table 3, Fig. 8)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import fsum

from service.domain.preferences import Choice, preference
from service.domain.reports import ReportColumn, ReportTable
from service.reporting.bradley_terry import Elo, EloSettings, Preference, bradley_terry
from service.reporting.reports.data import Data, Run
from service.reporting.reports.making import AGENT, Row, bounds, count, fraction, table
from service.reporting.reports.rli_options import HumanCoding, RliOptions

HUMAN = "human"
"""The player that stands for the reference works. No agent's id is spelled so."""
_CHOICES = {1: Choice.FIRST, 2: Choice.SAME, 3: Choice.SECOND}
"""Rating → who is better, the human first."""


def elo(data: Data, chosen: RliOptions) -> list[ReportTable]:
    """Return the ratings and the edges that they rest on. Where nobody was compared with some, no figure: it is said who."""
    found, left = preferences(data, chosen)
    settings = EloSettings(HUMAN, chosen.smoothing, chosen.weights, data.seed, chosen.elo_draws)
    notes: list[str] = []
    fitted: Elo | None = None
    try:
        fitted = bradley_terry(found, settings)
    except ValueError as error:
        notes.append(_named(data, str(error)))
    printed = {"anchor": HUMAN, "seed": settings.seed, "draws": settings.draws, **_options(chosen)}
    if fitted is not None:
        printed["draws_used"] = fitted.draws_used
    return [
        _ratings(data, fitted, len(found), left, printed, notes),
        _edges(data, fitted, len(found), left, printed),
    ]


def _options(chosen: RliOptions) -> dict[str, object]:
    names = ("human_edge_coding", "human_edges", "smoothing", "weights", "preferences")
    return {name: getattr(chosen, name) for name in names}


def preferences(data: Data, chosen: RliOptions) -> tuple[list[Preference], dict[str, int]]:
    """Return what is fitted, and what was left out. Works of excluded runs take no part."""
    runs = {r.run_id: r for r in data.counted}
    found: list[Preference] = []
    left: Counter[str] = Counter()
    for row in data.tables["preferences"].sort("preference_id").iter_rows(named=True):
        against_human = row["second_agent_id"] is None
        if row["source"] != chosen.preferences and not (against_human and chosen.human_edges == "preferences"):
            left["other source"] += 1
        elif against_human and chosen.human_edges != "preferences":
            left["pairs with the reference: human edges come from elsewhere"] += 1
        elif row["first_run_id"] not in runs or (not against_human and row["second_run_id"] not in runs):
            left["a run that does not count"] += 1
        else:
            second = HUMAN if against_human else row["second_agent_id"]
            found.append(Preference(row["task_id"], row["first_agent_id"], second, row["value"]))
    if chosen.human_edges == "ratings":
        found.extend(_human_edges(data, chosen.human_edge_coding))
    return [p for p in found if p.first != p.second], dict(sorted(left.items()))


def _human_edges(data: Data, coding: HumanCoding) -> list[Preference]:
    ratings = ratings_of_runs(data)
    return [
        Preference(run.task_id, HUMAN, run.agent_id, human_value(run, ratings.get(run.run_id, []), coding))
        for run in data.counted
    ]


def human_value(run: Run, ratings: Sequence[int], coding: HumanCoding) -> float:
    """Return what a project gives the human. Without ratings (nothing delivered, or judged by a model) its verdict decides."""
    if coding == "accept":
        return 0.0 if run.solved else 1.0
    if not ratings:
        return 1.0 - min(1.0, run.value)
    choices = [_CHOICES[rating] for rating in ratings]
    return preference(choices) if coding == "majority" else fsum(c.worth for c in choices) / len(choices)


def ratings_of_runs(data: Data) -> Mapping[str, list[int]]:
    """Return the independent ratings of each run, against the reference."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in data.tables["ratings"].sort("rating_id").iter_rows(named=True):
        if row["form"] == "human_panel" and row["purpose"] == "rating" and row["rating"] is not None:
            found[row["run_id"]].append(min(3, max(1, row["rating"])))
    return found


def _ratings(
    data: Data, fitted: Elo | None, n: int, left: dict[str, int], settings: dict[str, object], notes: list[str]
) -> ReportTable:
    rows: list[Row] = [
        {"agent": _label(data, r.player), "elo": r.elo, **bounds("elo", r.interval), "projects": r.projects}
        for r in (fitted.ratings if fitted else [])
    ]
    columns = [
        AGENT,
        ReportColumn(name="elo", title="Elo", unit="elo", interval="elo"),
        count("projects", "Projects with a comparison"),
    ]
    method = (
        "Bradley-Terry (1952) fitted to the mean preference of each pair over projects, 400-point scale, human = 1000; intervals: "
        "percentiles 2.5 and 97.5 of fits to resampled projects (RLI, section B.2). Draws that no longer link everybody are left out."
    )
    chart = {"mark": "point", "x": "agent", "y": "elo"}
    return table(
        data,
        "rli_elo",
        "Elo",
        columns,
        rows,
        n=n,
        unit="preferences",
        excluded={**left, **{f"runs: {why}": count for why, count in data.excluded.items()}},
        method=method,
        settings=settings,
        notes=notes,
        plot=chart,
    )


def _edges(data: Data, fitted: Elo | None, n: int, left: dict[str, int], settings: dict[str, object]) -> ReportTable:
    rows: list[Row] = [
        {"first": _label(data, a), "second": _label(data, b), "preference": value, "projects": projects}
        for (a, b), (value, projects) in (fitted.edges if fitted else {}).items()
    ]
    columns = [
        ReportColumn(name="first", title="First"),
        ReportColumn(name="second", title="Second"),
        fraction("preference", "First is preferred"),
        count("projects", "Projects"),
    ]
    method = "Mean over projects of what each project's opinions give the first: 1, 0.5 or 0."
    return table(
        data,
        "rli_elo_edges",
        "Preferences",
        columns,
        rows,
        n=n,
        unit="preferences",
        excluded=left,
        method=method,
        settings=settings,
    )


def _label(data: Data, player: str) -> str:
    return HUMAN if player == HUMAN else data.agents[player].label


def _named(data: Data, text: str) -> str:
    for agent in data.agents.values():
        text = text.replace(agent.agent_id, agent.label)
    return text
