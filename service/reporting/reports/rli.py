"""The report of the Remote Labor Index: automation rate, Elo, dollars, autoflation, and what raters say."""

from math import log

from service.domain.reports import ReportColumn, ReportHeader, ReportSettings, ReportTable
from service.domain.run_states import Flag
from service.reporting.autoflation import AcceptedRun, autoflation
from service.reporting.automation import automation
from service.reporting.covariates import pearson
from service.reporting.frames import Tables
from service.reporting.reports.data import Data, Run, gather
from service.reporting.reports.making import AGENT, WILSON, Row, bounds, count, fraction, options, table, usd
from service.reporting.reports.overview import exclusions
from service.reporting.reports.rli_elo import elo
from service.reporting.reports.rli_options import RliOptions
from service.reporting.reports.rli_ratings import evaluation_times, failure_tags, rater_agreement, ratings
from service.reporting.reports.score_tables import main_table
from service.reporting.reports.scores import Scores
from service.reporting.reports.spending import cost_against_score
from service.reporting.reports.worth import earnings

ACCEPTED_AT = 0.5
"""What a run counts that a client accepts: a panel's verdict is 0 or 1; beside the reference, 0.5 is as good."""


def rli(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the tables of RLI's paper, section 4 and appendix A. Raises Invalid for an option that does not fit."""
    chosen = options(RliOptions, settings.options)
    data = gather(tables, header, settings, passes_at=ACCEPTED_AT)
    scores = Scores(data)
    given = ratings(data)
    found = [
        rates(data),
        *elo(data, chosen),
        earnings(data, "dollars_earned", "Dollars earned"),
        deflation(data),
        failure_tags(data, given),
        *evaluation_times(data, given),
        rater_agreement(data, given, chosen),
        price_and_time(data),
        cost_against_score(data, scores.scored(data.attempted)),
    ]
    if chosen.best_scaffold is not None:
        found.insert(1, main_table(data, scores, chosen.best_scaffold))
    return [*found, exclusions(data)]


def rates(data: Data) -> ReportTable:
    """Return the paper's Table 1."""
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        found = automation([r.solved for r in runs])
        rows.append(
            {
                "agent": data.agents[agent].label,
                "projects": found.projects,
                "accepted": found.accepted,
                "rate": found.rate,
                **bounds("rate", found.interval),
                "no_deliverable": sum(Flag.NO_DELIVERABLE in r.flags for r in runs),
            }
        )
    columns = [
        AGENT,
        count("projects", "Evaluated"),
        count("accepted", "Accepted"),
        fraction("rate", "Automation rate", interval=True),
        count("no_deliverable", "Delivered nothing"),
    ]
    method = f"Accepted (counted {ACCEPTED_AT} or more) / evaluated; nothing delivered is a rejection under the policy `zero`. {WILSON}"
    settings = {"no_deliverable": data.header.policies.no_deliverable, "accepted_at": ACCEPTED_AT}
    chart = {"mark": "bar", "x": "agent", "y": "rate"}
    return table(
        data, "automation_rate", "Automation rate", columns, rows, method=method, settings=settings, plot=chart
    )


def deflation(data: Data) -> ReportTable:
    """Return the paper's Fig. 10."""
    prices = {task: data.tasks[task].price_usd for task in data.attempted}
    accepted = [r for r in data.counted if r.solved]
    found = autoflation(prices, [_accepted(data, run) for run in accepted])
    rows: list[Row] = [
        {
            "on": step.on.isoformat(),
            "autoflation": step.autoflation,
            "reduction_usd": step.reduction_usd,
            "projects": step.projects,
        }
        for step in found.steps
    ]
    columns = [
        ReportColumn(name="on", title="Models released by"),
        fraction("autoflation", "Autoflation"),
        usd("reduction_usd", "Cheaper by"),
        count("projects", "Cheaper projects"),
    ]
    left = {
        "projects without a price": found.unpriced,
        "accepted runs of models without a release date": found.undated,
        "accepted runs of unknown or declared cost": found.uncosted,
    }
    method = (
        "Sum over priced projects of max(0, price - least cost of an accepted run by a model that was out) / sum of prices (RLI, "
        "section A.2). Cost: models and services of the graded attempt, as measured."
    )
    settings = {"declared_costs": data.settings.declared_costs, "basket_usd": found.basket_usd, "basket": found.basket}
    notes = () if rows else ("No accepted run has both a known cost and a model with a release date.",)
    return table(
        data,
        "autoflation",
        "Autoflation",
        columns,
        rows,
        n=len(accepted),
        unit="accepted runs",
        excluded={reason: n for reason, n in left.items() if n},
        method=method,
        settings=settings,
        notes=notes,
        plot={"mark": "step", "x": "on", "y": "autoflation"},
    )


def _accepted(data: Data, run: Run) -> AcceptedRun:
    counts = run.cost_basis == "measured" or data.settings.declared_costs
    return AcceptedRun(run.task_id, data.agents[run.agent_id].released_on, run.spent_usd if counts else None)


def price_and_time(data: Data) -> ReportTable:
    """Return the paper's Fig. 15: price and hours of people."""
    tasks = [data.tasks[t] for t in data.attempted]
    pairs = [(t.price_usd, t.human_time_s) for t in tasks if t.price_usd and t.human_time_s]
    found = pearson([log(p) for p, _ in pairs], [log(s) for _, s in pairs])
    rows: list[Row] = [{"price_usd": price, "hours": time / 3600} for price, time in sorted(pairs)]
    columns = [usd("price_usd", "Price"), ReportColumn(name="hours", title="Hours")]
    text = "undefined" if found is None else f"{found:.3f}"
    left = len(tasks) - len(pairs)
    return table(
        data,
        "price_and_time",
        "What the work is worth and took",
        columns,
        rows,
        n=len(pairs),
        unit="projects",
        excluded={"price or time not known": left} if left else {},
        method="Projects with a price and a person's time; Pearson's r of their logarithms.",
        settings={"pearson_log": found},
        notes=[f"Pearson's r of the logarithms: {text}."],
        plot={"mark": "point", "x": "hours", "y": "price_usd"},
    )
