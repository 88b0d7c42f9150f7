"""The report of the Freelance benchmark: results, tests, wrong tests per task, earnings, value over time, causes."""

from collections import Counter
from collections.abc import Mapping

from service.domain.reports import ReportHeader, ReportSettings, ReportTable
from service.domain.tasks import Strict
from service.reporting.dollars import dollars
from service.reporting.frames import Tables
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, Run, gather, mapping
from service.reporting.reports.gradings import Passed
from service.reporting.reports.making import AGENT, WILSON, Row, bounds, count, fraction, options, table, usd
from service.reporting.reports.overview import exclusions, failure_causes
from service.reporting.reports.worth import earnings, value_over_time, works
from service.reporting.success import wilson
from service.reporting.test_cases import Checked, Tally, tally

METHOD = "test_cases"


class FreelanceOptions(Strict):
    """None."""


def freelance(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the tables and figures of the Freelance paper, sections 5 and 6."""
    options(FreelanceOptions, settings.options)
    data = gather(tables, header, settings)
    tested = _Tested(data)
    return [
        results(data, tested),
        earnings(data, "earnings", "Earnings"),
        tests(data, tested),
        wrong(data, tested),
        value_over_time(data),
        failure_causes(data),
        exclusions(data),
    ]


class _Tested:
    """What the tests said of every counted run."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._passed = gradings.tests(data, METHOD)
        self._certified = _certified(data)
        self._tests = _numbers(data, self._passed)
        self.untested = sum(self.of(run) is None for run in data.counted)

    def of(self, run: Run) -> Checked | None:
        """Return a run's tests; all are wrong of a run that counts 0 untested. Null where nobody knows how many there are."""
        own = self._passed.get(run.run_id)
        if own is not None and own.total:
            by_policy = run.value == 0 and run.fraction is not None and run.fraction > 0
            return Checked(
                own.total, own.total if by_policy else own.total - own.passed, self._certified.get(run.run_id)
            )
        most = self._tests.get(run.task_id)
        return Checked(most, most) if most and run.value == 0 else None

    def tally(self, agent: str) -> Tally:
        return tally(t for run in self._data.by_agent[agent] if (t := self.of(run)) is not None)


def results(data: Data, tested: _Tested) -> ReportTable:
    """Return the paper's Table 1."""
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        found, money = tested.tally(agent), dollars(works(data, runs))
        interval = wilson(found.solved, found.attempted) if found.attempted else None
        rows.append(
            {
                "agent": data.agents[agent].label,
                "attempted": found.attempted,
                "solved": found.solved,
                "success_rate": found.success_rate,
                **bounds("success_rate", interval),
                "test_accuracy": found.test_accuracy,
                "earned_usd": money.earned_usd,
                "unpriced": money.unpriced,
                "with_passing_score": found.with_passing_score,
                "certified": found.certified,
            }
        )
    columns = [
        AGENT,
        count("attempted", "Attempted"),
        count("solved", "Solved"),
        fraction("success_rate", "Success rate", interval=True),
        fraction("test_accuracy", "Test accuracy"),
        usd("earned_usd", "Earned"),
        count("unpriced", "Without a price"),
        count("with_passing_score", "With a passing score"),
        count("certified", "Reach it"),
    ]
    method = (
        "Solved: all tests of the task pass. Success rate: solved / attempted. Test accuracy: passed / tests of all tasks together. "
        f"Earned: sum of the prices of solved tasks. {WILSON}"
    )
    return table(data, "freelance_results", "Results", columns, rows, method=method, excluded=_left(data, tested))


def tests(data: Data, tested: _Tested) -> ReportTable:
    """Return the paper's Fig. 2."""
    tallies = {a.label: tested.tally(i) for i, a in data.agents.items()}
    rows: list[Row] = [
        {"agent": label, "tests": t.tests, "correct": t.passed, "incorrect": t.wrong, "accuracy": t.test_accuracy}
        for label, t in tallies.items()
    ]
    columns = [
        AGENT,
        count("tests", "Tests"),
        count("correct", "Correct"),
        count("incorrect", "Incorrect"),
        fraction("accuracy", "Accuracy"),
    ]
    n = sum(t.tests for t in tallies.values())
    chart = {"mark": "bar", "x": "agent", "y": "correct"}
    method = "Tests of all counted runs; timeouts, crashes and missing programs are incorrect."
    return table(
        data,
        "freelance_tests",
        "Tests",
        columns,
        rows,
        n=n,
        unit="tests",
        excluded=_left(data, tested),
        method=method,
        plot=chart,
    )


def wrong(data: Data, tested: _Tested) -> ReportTable:
    """Return the paper's Fig. 3."""
    rows: list[Row] = [
        {"agent": agent.label, "wrong": wrong, "runs": n}
        for agent_id, agent in data.agents.items()
        for wrong, n in tested.tally(agent_id).histogram.items()
    ]
    columns = [AGENT, count("wrong", "Wrong tests"), count("runs", "Runs")]
    chart = {"mark": "bar", "x": "wrong", "y": "runs", "color": "agent"}
    method = "Counted runs by how many of their task's tests went wrong."
    return table(
        data,
        "wrong_histogram",
        "Wrong tests per task",
        columns,
        rows,
        method=method,
        excluded=_left(data, tested),
        plot=chart,
    )


def _left(data: Data, tested: _Tested) -> dict[str, int]:
    return {**data.excluded, **({"without tests": tested.untested} if tested.untested else {})}


def _numbers(data: Data, passed: Mapping[str, Passed]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for run in data.runs:
        if run.run_id in passed:
            found[run.task_id] = max(found[run.task_id], passed[run.run_id].total)
    return dict(found)


def _certified(data: Data) -> dict[str, bool]:
    rows = gradings.standing(data).filter(gradings.of_method(METHOD)).select("run_id", "detail").iter_rows()
    details = {str(run): mapping(detail) for run, detail in rows}
    return {run: bool(detail["certified"]) for run, detail in details.items() if "certified" in detail}
