"""``workstead eval leaderboard``, ``plot``, ``series`` and ``replay``: what is asked for, written, and said by the exit code."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server
from tests.unit.workstead.test_cli_eval import REPORT, evaluation, finished
from tests.unit.workstead.test_commands import HOSTILE, ok, server
from workstead.cli.eval.alike import differences
from workstead.models_evaluations import Report

__all__ = ["server"]
BOARD: dict[str, Any] = {
    "leaderboard": [{"rank": 1, "displayName": f"one{HOSTILE}", "framework": "codex", "overallScore": 57.55, "totalScore": 2516.0,
                     "maxScore": 4372.0, "tasksEvaluated": 63}],
    "totalTasks": 65, "aggregate": "micro", "missing": "zero", "plan": "task@1", "notice": "",
}  # fmt: skip


def test_a_leaderboard_is_printed_and_written_as_the_site_reads_it(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "leaderboard.json"
    words = ("eval", "leaderboard", "eval_1", "eval_2", "--set", "options.aggregate=micro", "-o", str(target))
    result = server.run(*words, answers=[ok(**BOARD)])
    assert result.exit_code == 0, result.output
    assert server.asked == [("POST", "/v1/reports:leaderboard")]
    assert json.loads(server.script.bodies[0]) == {
        "evaluations": ["eval_1", "eval_2"], "settings": {"options": {"aggregate": "micro"}},
    }  # fmt: skip
    assert json.loads(target.read_text()) == BOARD
    assert "57.55" in result.stdout
    assert "ranked by micro; 65 tasks, missing ones: zero" in result.stdout
    assert "\x1b" not in result.stdout
    assert server.run(*words, answers=[ok(**BOARD)]).exit_code == 1, "it is there"
    only = server.run("eval", "leaderboard", "eval_1", "--json", answers=[ok(**BOARD)])
    assert json.loads(only.stdout) == BOARD


def test_a_plot_becomes_a_file(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "rate.svg"
    words = ("eval", "plot", "eval_1", "automation_rate", "-o", str(target))
    assert server.run(*words, answers=[httpx.Response(200, content=b"<svg>")]).exit_code == 0
    assert server.asked == [("GET", "/v1/evaluations/eval_1/report/plots/automation_rate.svg")]
    assert target.read_bytes() == b"<svg>"
    assert server.run("eval", "plot", "eval_1", "x", "-o", str(tmp_path / "x.gif"), answers=[]).exit_code == 2


def test_series_are_points(server: Server) -> None:
    found = {"evaluation_id": "eval_1", "since": "2026-11-30T00:00:00Z", "step_s": 60.0,
             "series": [{"agent": None, "points": {"earned_usd": [[60.0, 25.5]]}}]}  # fmt: skip
    words = ("eval", "series", "eval_1", "--metric", "earned_usd", "--by-agent", "--step", "60")
    result = server.run(*words, answers=[ok(**found)])
    assert result.exit_code == 0, result.output
    assert dict(server.script.requests[0].url.params) == {"metric": "earned_usd", "by": "agent", "step_s": "60.0"}
    assert "25.5" in result.stdout


@pytest.mark.parametrize(("changed", "code", "said"), [({}, 0, "all 1 tables of"), ({"rate": 0.6}, 1, "0.5 and 0.6")])
def test_a_replay_says_whether_its_tables_are_the_same(
    server: Server, changed: dict[str, Any], code: int, said: str
) -> None:
    (table,) = REPORT["tables"]
    other = {**REPORT, "tables": [{**table, "rows": [{**table["rows"][0], **changed}]}]}
    done = finished()
    answers = [done, evaluation(status=201), evaluation("running"), done, done, ok(**REPORT), ok(**other)]
    result = server.run("eval", "replay", "eval_1", answers=answers)
    assert result.exit_code == code, result.output
    assert json.loads(server.script.bodies[1]) == {"name": "week, replayed", "replay_of": "eval_1"}
    assert said in result.output


class TestAlike:
    def report(self, **table: Any) -> Report:
        fields = {"name": "times", "columns": [{"name": "agent"}, {"name": "mean_s", "unit": "s"}, {"name": "n"}],
                  "rows": [{"agent": "a", "mean_s": 1.0, "n": 3}], "n": 3, "settings": {"seed": 7}}  # fmt: skip
        return Report.model_validate({"kind": "overview", "tables": [{**fields, **table}]})

    def test_times_may_differ(self) -> None:
        assert not [*differences(self.report(), self.report(rows=[{"agent": "a", "mean_s": 2.0, "n": 3}]))]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"rows": [{"agent": "a", "mean_s": 1.0, "n": 4}]}, "times: row 1 (a): n: 3 and 4"),
            ({"rows": [{"agent": "a", "mean_s": 1.0}]}, "times: row 1 (a): n: 3 and None"),
            ({"rows": []}, "times: 1 rows and 0"),
            ({"settings": {"seed": 8}}, "times: settings: {'seed': 7} and {'seed': 8}"),
            ({"n": 2}, "times: n: 3 and 2"),
            ({"excluded": {"ungraded": 1}}, "times: excluded: {} and {'ungraded': 1}"),
        ],
    )
    def test_all_else_is_named(self, change: dict[str, Any], said: str) -> None:
        assert [*differences(self.report(), self.report(**change))] == [said]

    def test_a_table_that_is_missing_is_named(self) -> None:
        found = [*differences(self.report(), self.report(name="others"))]
        assert sorted(found) == ["others: only in one of them", "times: only in one of them"]
