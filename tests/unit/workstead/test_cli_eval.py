"""``workstead eval``: what is asked for, shown, asked of people, and said by the exit code."""

import json
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from tests.unit.workstead.commands import Server
from tests.unit.workstead.fake_api import problem
from tests.unit.workstead.test_commands import HOSTILE, ok, page, server
from workstead.cli.eval import watching
from workstead.cli.eval.watching import exit_code, is_held_back
from workstead.models_evaluations import Evaluation

__all__ = ["server"]
ESTIMATE: dict[str, Any] = {
    "runs": 12, "agents_usd": {"p10": "1.0", "p50": "2.5", "p90": "4"}, "judges_usd": None,
    "run_hours": {"p10": 1, "p50": 2, "p90": 3}, "finish_s": {"p10": 1800, "p50": 3600, "p90": 7200},
    "agents": [{"id": "agt_1", "runs": 12, "basis": "history", "n": 9, "agents_usd": None, "run_hours": None}],
    "judges": {"calls": 24, "basis": "none"}, "slots": 4, "disk_bytes": {"live": 1 << 30, "kept": None},
}  # fmt: skip


def agent(number: int = 1, *, total: int = 6, hold: dict[str, Any] | None = None, **phases: int) -> dict[str, Any]:
    outcome = {"graded": phases.get("done", 0)}
    counts = {"phase": phases, "outcome": outcome}
    return {
        "id": f"agt_{number}",
        "label": f"one-{number}",
        "samples": 2,
        "total": total,
        "counts": counts,
        "hold": hold,
    }


def body(state: str = "draft", *, graded: int = 0, **fields: Any) -> dict[str, Any]:
    agents = fields.pop("agents", [agent()])
    phase: dict[str, int] = {}
    for one in agents:
        for name, n in one["counts"]["phase"].items():
            phase[name] = phase.get(name, 0) + n
    counts = {"phase": phase, "outcome": {"graded": graded}}
    total = sum(one["total"] for one in agents)
    given = {"id": "eval_1", "name": "week", "state": state, "revision": 3, "total": total, "counts": counts}
    return {**given, "agents": agents, "estimate": ESTIMATE, "plan": "task@1", **fields}


def evaluation(state: str = "draft", status: int = 200, **fields: Any) -> httpx.Response:
    return httpx.Response(status, json=body(state, **fields))


def finished(graded: int = 6) -> httpx.Response:
    return evaluation("done", agents=[agent(done=6)], graded=graded, revision=9)


class TestLastDollars:
    ENDED: ClassVar[dict[str, Any]] = {
        "agents": [agent(done=6)],
        "graded": 6,
        "revision": 9,
        "updated_at": "2026-01-05T10:00:00.5Z",
    }

    def told(self, server: Server, *spends: dict[str, str]) -> Any:
        answers = [evaluation("done", spend=spend, **self.ENDED) for spend in spends]
        result = server.run("eval", "watch", "eval_1", "--json", answers=answers)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["spend"]

    def test_are_waited_for(self, server: Server) -> None:
        early = {"agents_usd": "1", "at": "2026-01-05T10:00:00.4Z"}
        late = {"agents_usd": "2", "at": "2026-01-05T10:00:00.6Z"}
        assert self.told(server, early, {"agents_usd": "1"}, late) == late
        assert server.script.left == 0

    def test_that_are_summed_cost_no_request(self, server: Server) -> None:
        assert self.told(server, summed := {"agents_usd": "2", "at": "2026-01-05T10:00:00.5Z"}) == summed

    def test_that_never_come_do_not_hold_anybody_up(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watching, "SUMMED_S", 0.0)
        early = {"agents_usd": "1"}
        assert self.told(server, early, early) == early


class TestBenchmark:
    words = ("eval", "jobbench", "-a", "codex:gpt@max", "-a", "solver", "-k", "2", "--limit", "5", "--include", "fin*",
             "--facet", "size=small", "--plan", "strict", "--budget", "20", "--order", "depth", "--name", "week")  # fmt: skip

    def test_draft_then_yes_then_watched_to_the_end(self, server: Server) -> None:
        running = evaluation("running", agents=[agent(done=1, running=5)], graded=1, revision=5)
        answers = [
            evaluation(status=201),
            evaluation("checking"),
            evaluation("checking", revision=4),
            running,
            finished(),
        ]
        result = server.run(*self.words, answers=answers, stdin="y\n")
        assert result.exit_code == 0, result.output
        drafted = json.loads(server.script.bodies[0])
        assert drafted["agents"] == [
            {"scaffold": "codex", "model": "gpt", "settings": {"effort": "max"}},
            {"agent": "solver"},
        ]
        assert drafted["tasks"] == {"include": ["fin*"], "facets": {"size": ["small"]}, "limit": 5}
        assert {k: drafted[k] for k in ("name", "benchmark", "samples", "plan", "order", "seed", "budget")} == {
            "name": "week", "benchmark": "jobbench", "samples": 2, "plan": "strict", "order": "depth", "seed": 0,
            "budget": {"agents_usd": "20.000000"},
        }  # fmt: skip
        assert server.asked[:2] == [("POST", "/v1/evaluations"), ("POST", "/v1/evaluations/eval_1/start")]
        assert server.script.requests[1].headers["If-Match"] == '"3"'
        assert json.loads(server.script.bodies[1]) == {"skip_preflight": False}
        assert "$2.50 ($1.00 to $4.00)" in result.stdout
        for said in (
            "history (9)",
            "unknown for 24 calls (none)",
            "1.00 h (0.50 to 2.00) with 4 slots",
            "1.0 GiB live",
        ):
            assert said in result.stdout
        assert "6 of 6 done" in result.stdout
        assert server.script.left == 0

    @pytest.mark.parametrize("said", ["n\n", ""])
    def test_a_no_deletes_the_draft(self, server: Server, said: str) -> None:
        result = server.run(*self.words, answers=[evaluation(status=201), httpx.Response(204)], stdin=said)
        assert result.exit_code == 1
        assert server.asked[-1] == ("DELETE", "/v1/evaluations/eval_1")

    def test_a_dry_run_leaves_nothing(self, server: Server) -> None:
        answers = [evaluation(status=201), httpx.Response(204)]
        result = server.run(*self.words, "--dry-run", "--json", answers=answers)
        assert result.exit_code == 0
        assert json.loads(result.stdout)["estimate"]["runs"] == 12
        assert server.asked[-1] == ("DELETE", "/v1/evaluations/eval_1")

    def test_what_is_refused_is_said_by_agent_and_task(self, server: Server) -> None:
        wrong = [
            {"agent": "codex · gpt", "task": f"t1{HOSTILE}", "type": "unsupported_effort", "detail": "no such effort"}
        ]
        answers = [problem(422, "evaluation_refused", detail="1 problem", problems=wrong)]
        result = server.run(*self.words, answers=answers)
        assert result.exit_code == 1
        assert "codex · gpt · t1" in result.stderr
        assert "unsupported_effort: no such effort" in result.stderr
        assert "\x1b" not in result.stderr

    def test_an_agent_must_be_named(self, server: Server) -> None:
        assert server.run("eval", "jobbench", answers=[]).exit_code == 2

    def test_json_is_one_object_and_nothing_else(self, server: Server) -> None:
        answers = [evaluation(status=201), evaluation("running"), finished()]
        result = server.run(*self.words, "--yes", "--json", answers=answers)
        assert json.loads(result.stdout)["state"] == "done"

    def test_a_preflight_that_failed_is_exit_code_1_with_the_providers_words(self, server: Server) -> None:
        found: dict[str, Any] = {
            "ok": False,
            "agents": {
                "agt_1": {
                    "ok": False,
                    "problems": [{"what": "model gpt", "detail": f"HTTP 404: no such model{HOSTILE}"}],
                }
            },
            "judges": {"m#1": {"ok": False, "detail": "no key"}},
            "notes": [],
        }
        answers = [evaluation(status=201), evaluation("checking"), evaluation("draft", preflight=found, revision=5)]
        result = server.run(*self.words, "--yes", answers=answers)
        assert result.exit_code == 1
        assert "one-1: model gpt: HTTP 404: no such model" in result.stdout
        assert "judge m#1: no key" in result.stdout
        assert "\x1b" not in result.stdout


class TestFiles:
    def test_a_file_is_sent_as_it_stands(self, server: Server, tmp_path: Path) -> None:
        file = tmp_path / "week.yaml"
        file.write_text("name: week\nbenchmark: jobbench\nagents: [{agent: solver}]\nsamples: 2\n")
        answers = [evaluation(status=201), evaluation("running"), finished(graded=5)]
        result = server.run("eval", "run", str(file), "--yes", "--skip-preflight", answers=answers)
        assert result.exit_code == 3
        assert json.loads(server.script.bodies[0]) == {
            "name": "week", "benchmark": "jobbench", "agents": [{"agent": "solver"}], "samples": 2,
        }  # fmt: skip
        assert json.loads(server.script.bodies[1]) == {"skip_preflight": True}

    def test_a_plan_is_a_draft_that_stays(self, server: Server, tmp_path: Path) -> None:
        file = tmp_path / "week.json"
        file.write_text('{"name": "week"}')
        warned = evaluation(status=201, warnings=[{"type": "image_missing", "detail": "host x has no image y"}])
        result = server.run("eval", "plan", str(file), answers=[warned])
        assert result.exit_code == 0
        assert "note: image_missing: host x has no image y" in result.stdout
        assert len(server.asked) == 1
        answers = [evaluation(), evaluation("running"), evaluation("running")]
        assert server.run("eval", "start", "eval_1", "--detach", answers=answers).exit_code == 0


class TestEnds:
    """When nothing goes on by itself any more, and what the exit code then says."""

    RULE: ClassVar[dict[str, Any]] = {"reason": "stop_rule", "detail": "5 of 10 were bad"}

    def read(self, state: str = "running", **fields: Any) -> Evaluation:
        return Evaluation.model_validate(body(state, **fields))

    def test_a_rule_holds_all_that_is_left(self) -> None:
        held = agent(2, hold=self.RULE, done=2, held=4)
        found = self.read(agents=[agent(done=6), held], holds=[{**self.RULE, "agent_id": "agt_2"}], graded=8)
        assert is_held_back(found)
        assert exit_code(found) == 4

    def test_others_still_go_on(self) -> None:
        held = agent(2, hold=self.RULE, done=2, held=4)
        assert not is_held_back(self.read(agents=[agent(done=5, grading=1), held], holds=[self.RULE]))
        assert not is_held_back(
            self.read(agents=[agent(done=5, queued=1), held], holds=[{**self.RULE, "agent_id": "agt_2"}])
        )

    def test_a_provider_that_is_away_is_waited_for(self) -> None:
        away = agent(1, done=2, held=4)
        held = agent(2, hold=self.RULE, done=2, held=4)
        assert not is_held_back(self.read(agents=[away, held], holds=[{**self.RULE, "agent_id": "agt_2"}]))

    def test_a_person_who_holds_lets_go_again(self) -> None:
        held = agent(1, hold={"reason": "agent_held"}, done=2, held=4)
        assert not is_held_back(self.read(agents=[held], holds=[{"reason": "agent_held", "agent_id": "agt_1"}]))

    def test_a_budget_holds_the_whole(self) -> None:
        found = self.read(agents=[agent(done=2, queued=4)], holds=[{"reason": "budget", "detail": "spent"}])
        assert exit_code(found) == 4

    def test_judges_without_a_budget_hold_what_waits_for_them(self) -> None:
        hold = {"reason": "judges_budget", "detail": "1.2 of 1 USD", "agent_id": None, "agent": None}
        assert exit_code(self.read(agents=[agent(done=2, grading=4)], holds=[hold], graded=2)) == 4
        assert not is_held_back(self.read(agents=[agent(done=2, grading=4)]))
        assert not is_held_back(self.read(agents=[agent(done=2, grading=3, running=1)], holds=[hold]))
        assert not is_held_back(self.read(agents=[agent(done=2, grading=3, queued=1)], holds=[hold]))
        held = agent(2, hold=self.RULE, done=2, held=4)
        assert is_held_back(self.read(agents=[agent(done=5, grading=1), held], holds=[hold, self.RULE]))

    @pytest.mark.parametrize(
        ("state", "graded", "code"), [("done", 6, 0), ("done", 5, 3), ("stopped", 2, 3), ("draft", 0, 1)]
    )
    def test_others(self, state: str, graded: int, code: int) -> None:
        assert exit_code(self.read(state, agents=[agent(done=6)], graded=graded)) == code

    def test_runs_that_were_redone_are_not_wanted_twice(self) -> None:
        """Two samples of three tasks; two runs were invalidated and made anew."""
        found = self.read("done", agents=[agent(total=8, done=8)], graded=6, resolved={"tasks": [{}, {}, {}]})
        assert exit_code(found) == 0
        assert exit_code(found.model_copy(update={"counts": {"outcome": {"graded": 5}}})) == 3

    def test_watch_says_why_and_ends(self, server: Server) -> None:
        held = agent(2, hold=self.RULE, done=2, held=4)
        hold = {**self.RULE, "agent_id": "agt_2", "label": f"two{HOSTILE}"}
        result = server.run("eval", "watch", "eval_1", answers=[evaluation("running", agents=[held], holds=[hold])])
        assert result.exit_code == 4
        assert "[/red]: stop_rule: 5 of 10 were bad" in result.stdout
        assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("words", "path", "sent"),
    [
        (["hold", "eval_1", "-a", "x", "--reason", "odd"], "hold", {"agent": "x", "reason": "odd"}),
        (["hold", "eval_1"], "hold", {"reason": ""}),
        (["release", "eval_1", "--model", "m"], "release", {"model": "m"}),
        (["stop", "eval_1", "--mode", "queued"], "stop", {"mode": "queued"}),
        (["resume", "eval_1", "--detach"], "resume", None),
        (
            ["retry", "eval_1", "--because", "sandbox_lost", "--detach"],
            "retry",
            {"because": ["sandbox_lost"], "outcomes": []},
        ),
        (["add-agent", "eval_1", "s:m", "--detach"], "agents", [{"scaffold": "s", "model": "m"}]),
    ],
)
def test_each_command_asks_for_its_own(server: Server, words: list[str], path: str, sent: Any) -> None:
    result = server.run("eval", *words, answers=[evaluation("running")])
    assert result.exit_code == 0, result.output
    assert server.asked == [("POST", f"/v1/evaluations/eval_1/{path}")]
    assert (json.loads(server.script.bodies[0]) if server.script.bodies[0] else None) == sent


def test_release_of_all_asks_for_each_that_is_held(server: Server) -> None:
    held = evaluation("running", agents=[agent(1), agent(2, hold={"reason": "stop_rule"})])
    result = server.run("eval", "release", "eval_1", "--all", answers=[held, evaluation("running")])
    assert result.exit_code == 0, result.output
    assert [json.loads(body) for body in server.script.bodies] == [{}, {"agent": "agt_2"}]
    assert server.run("eval", "release", "eval_1", "--all", "-a", "x", answers=[]).exit_code == 2


def test_set_is_laid_over_what_there_is(server: Server) -> None:
    now = evaluation("running", concurrency={"models": {"a": 1}})
    result = server.run("eval", "set", "eval_1", "concurrency.models.b=2", "priority=4", answers=[now, now])
    assert result.exit_code == 0
    assert server.asked[1] == ("PATCH", "/v1/evaluations/eval_1")
    assert json.loads(server.script.bodies[1]) == {"concurrency": {"models": {"a": 1, "b": 2}}, "priority": 4}


def test_retry_must_say_what(server: Server) -> None:
    assert server.run("eval", "retry", "eval_1", answers=[]).exit_code == 2


def test_invalidate_counts_first_and_asks(server: Server) -> None:
    words = ("eval", "invalidate", "eval_1", "--task", "task_1", "--reason", "fixture")
    result = server.run(*words, answers=[ok(runs=4), ok(runs=4)], stdin="y\n")
    assert result.exit_code == 0, result.output
    sent = [json.loads(b) for b in server.script.bodies]
    chosen = {"task_id": ["task_1"], "evaluation_id": ["eval_1"]}
    assert sent == [{"filter": chosen, "reason": "fixture", "dry_run": dry} for dry in (True, False)]
    assert server.run(*words, answers=[ok(runs=4)], stdin="n\n").exit_code == 1
    assert len(server.asked) == 1


def test_lists_and_pages_show_no_escape(server: Server) -> None:
    listed = server.run("eval", "list", "--label", "a=b", answers=[page(body(name=HOSTILE))])
    assert "eval_1" in listed.stdout
    assert server.script.requests[0].url.params["label.a"] == "b"
    shown = server.run("eval", "show", "eval_1", answers=[evaluation("running", name=HOSTILE, notes=HOSTILE)])
    entry = {"id": 1, "actor": "tok_1", "action": f"hold{HOSTILE}", "detail": {"reason": HOSTILE}}
    logged = server.run("eval", "log", "eval_1", answers=[page(entry)])
    for result in (listed, shown, logged):
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.stdout


REPORT: dict[str, Any] = {
    "kind": "overview",
    "header": {"title": "Overview", "plan": "task@1", "runs": 12},
    "validity": [
        {"name": "retried", "text": "retried", "count": 2, "of": 12, "warning": True},
        {"name": "assisted", "text": "assisted", "count": 0, "of": 12},
    ],
    "tables": [
        {
            "name": "success", "title": "Success", "n": 10, "excluded": {"ungraded": 2}, "notes": ["a note"],
            "columns": [
                {"name": "agent", "title": "Agent"}, {"name": "rate", "title": "Rate", "unit": "fraction", "interval": "rate"},
                {"name": "rate_low", "title": "low", "unit": "fraction"}, {"name": "usd", "title": "Cost", "unit": "usd"},
            ],
            "rows": [{"agent": f"one{HOSTILE}", "rate": 0.5, "rate_low": 0.25, "rate_high": 0.75, "usd": None}],
        }
    ],
}  # fmt: skip


def test_a_report_is_printed_with_what_it_rests_on(server: Server) -> None:
    result = server.run(
        "eval", "report", "eval_1", "--set", "seed=4", "--set", "options.coding=a", answers=[ok(**REPORT)]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(server.script.bodies[0]) == {"seed": 4, "options": {"coding": "a"}}
    for said in ("50.0 % [25.0 %, 75.0 %]", "n = 10 runs; left out: 2 ungraded", "a note", "retried: 2 of 12"):
        assert said in result.stdout
    assert "assisted" not in result.stdout
    assert "\x1b" not in result.stdout


def test_several_reports_comparisons_and_pages(server: Server, tmp_path: Path) -> None:
    assert server.run("eval", "report", "eval_1", "eval_2", answers=[ok(**REPORT)]).exit_code == 0
    assert server.asked == [("POST", "/v1/reports")]
    assert server.run("eval", "compare", "eval_1", "eval_2", answers=[ok(**REPORT)]).exit_code == 0
    assert server.asked == [("POST", "/v1/reports:compare")]
    assert server.run("eval", "compare", "eval_1", answers=[]).exit_code == 2
    html = tmp_path / "page.html"
    words = ("eval", "report", "eval_1", "--html", str(html))
    assert server.run(*words, answers=[httpx.Response(200, content=b"<html>")]).exit_code == 0
    assert html.read_bytes() == b"<html>"
    assert server.run(*words, answers=[httpx.Response(200, content=b"<html>")]).exit_code == 1  # it is there


def test_a_table_becomes_a_file(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "runs.parquet"
    words = ("eval", "tables", "eval_1", "runs", "-o", str(target))
    assert server.run(*words, answers=[httpx.Response(200, content=b"PAR1")]).exit_code == 0
    assert server.asked == [("GET", "/v1/evaluations/eval_1/tables/runs.parquet")]
    assert target.read_bytes() == b"PAR1"
    listed = server.run("eval", "tables", "eval_1", answers=[page({"name": "runs", "text": "A run", "columns": [{}]})])
    assert "A run" in listed.stdout
    assert server.run("eval", "tables", "eval_1", "runs", "-o", "x.txt", answers=[]).exit_code == 2


def test_what_may_not_leave_is_told_with_the_word_that_waives_it(server: Server, tmp_path: Path) -> None:
    found = {"kind": "name", "name": "name:a36d7c5312e4", "shown": "Quay", "places": ["tables/runs.csv", "report.html"]}
    problem = {"type": "urn:workstead:problem:open_findings", "detail": "1 thing", "status": 409, "findings": [found]}
    failed = ok(
        id="op_1", kind="export", created_at="2026-11-30T00:00:00Z", state="failed",
        ended_at="2026-11-30T00:00:01Z", problem=problem,
    )  # fmt: skip
    target = tmp_path / "out.zip"
    result = server.run("eval", "export", "eval_1", "-o", str(target), answers=[failed, failed])
    assert (result.exit_code, result.stdout, target.exists()) == (1, "", False)
    assert "'Quay' in tables/runs.csv, report.html: --waive name:a36d7c5312e4" in result.stderr
    assert "open_findings: 1 thing" in result.stderr


def test_an_export_is_for_whom_it_says_and_named_for_a_publication(server: Server, tmp_path: Path) -> None:
    made: dict[str, Any] = {"id": "op_1", "kind": "export", "created_at": "2026-11-30T00:00:00Z", "result": {}}
    target = tmp_path / "out.zip"
    words = (
        "--profile",
        "public",
        "--alias",
        "one-1=North",
        "--embargo",
        "one-2",
        "--secret",
        "Quay",
        "--kind",
        "jobbench",
    )
    answers = [
        ok(**made, state="pending"),
        ok(**made, state="succeeded", ended_at="2026-11-30T00:00:01Z"),
        httpx.Response(200, content=b"PK"),
    ]
    result = server.run("eval", "export", "eval_1", "-o", str(target), *words, "--set", "seed=4", answers=answers)
    assert result.exit_code == 0, result.output
    assert json.loads(server.script.bodies[0]) == {
        "evaluation_ids": ["eval_1"], "profile": "public", "waivers": [], "names": ["Quay"], "aliases": {"one-1": "North"},
        "embargo": ["one-2"], "kind": "jobbench", "settings": {"seed": 4},
    }  # fmt: skip
    assert target.read_bytes() == b"PK"
    assert "op_1" in result.stdout
