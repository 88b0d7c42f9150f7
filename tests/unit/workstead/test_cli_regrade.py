"""``workstead regrade``, ``plans`` and what people say against verdicts: what is asked for, shown, and asked of people."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.workstead.commands import Server

ESTIMATE: dict[str, Any] = {
    "runs": 100, "left_out": 3, "gradings": 100, "judge_calls": 250, "input_tokens": 90_000, "output_tokens": 8000,
    "cost_usd": {"p50": "0.390000", "p90": "0.450000"}, "basis": "other_judge",
    "evidence": {"documents": 90, "to_extract": 0}, "duration_s": None, "sample": {"runs": 30},
}  # fmt: skip
COMPARED: dict[str, Any] = {
    "n": 30, "left_out": 0, "before_mean": 1.0, "after_mean": 0.7, "agreement": 0.7, "kappa": None,
    "difference": {"mean": -0.3, "interval": [-0.46, -0.14]}, "flips_up": {"n": 0, "run_ids": []},
    "flips_down": {"n": 2, "run_ids": ["run_1", "run_2\u202e"]}, "cost": {"usd": "0.12"},
}  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def regrade(state: str = "draft", status: int = 200, **fields: Any) -> httpx.Response:
    body = {"id": "rgr_1", "plan": "strict@2", "state": state, "estimate": ESTIMATE, "comparison": None, **fields}
    return httpx.Response(status, json=body)


def sampled_then_done(failed: int = 0) -> list[httpx.Response]:
    gradings = {"graded": 100 - failed, "failed": failed} if failed else {"graded": 100}
    return [
        regrade(status=201),
        regrade("sampling"),
        regrade("sampling", progress={"gradings": {"pending": 30}}),
        regrade("sampled", comparison=COMPARED),
        regrade("running"),
        regrade("done", comparison=COMPARED, progress={"gradings": gradings}),
    ]


class TestRegrade:
    words = ("regrade", "--plan", "strict", "--filter", "facet.size=small", "--filter", "flag=external", "--sample", "30",
             "--stratify", "agent", "--seed", "4", "--primary")  # fmt: skip

    def test_estimate_then_sample_then_the_rest_each_after_a_yes(self, server: Server) -> None:
        result = server.run(*self.words, answers=sampled_then_done(), stdin="y\ny\n")
        assert result.exit_code == 0, result.output
        posts = [json.loads(b) for (m, _), b in zip(server.asked, server.script.bodies, strict=True) if m == "POST"]
        assert posts == [
            {
                "plan": "strict",
                "filter": {"facets": {"size": "small"}, "flag": ["external"]},
                "sample": {"n": 30, "seed": 4, "stratify": "agent"},
                "primary": True,
                "round": 1,
            },
            {"scope": "sample"},
            {"scope": "all"},
        ]
        for shown in (
            "$0.39, at most $0.45",
            "other_judge",
            "0 of 90",
            "unknown",
            "-0.300 [-0.460, -0.140]",
            "0.700, -",
        ):
            assert shown in result.stdout
        assert "\u202e" not in result.stdout
        assert "30 pending" in result.stderr

    @pytest.mark.parametrize(("said", "posts"), [("n\n", 2), ("y\nn\n", 3)])
    def test_a_no_cancels_and_grades_no_more(self, server: Server, said: str, posts: int) -> None:
        answers = sampled_then_done()[: 1 if posts == 2 else 4]
        result = server.run(*self.words, answers=[*answers, regrade("cancelled")], stdin=said)
        assert result.exit_code == 1
        asked = [path for method, path in server.asked if method == "POST"]
        assert len(asked) == posts
        assert asked[-1] == "/v1/regrades/rgr_1/cancel"

    def test_a_failed_grading_is_exit_code_3(self, server: Server) -> None:
        result = server.run(*self.words, "--yes", "--json", answers=sampled_then_done(failed=1))
        assert result.exit_code == 3
        assert [json.loads(text)["state"] for text in result.stdout.splitlines()] == ["draft", "sampled", "done"]

    def test_an_unknown_cost_is_said_and_an_estimate_starts_nothing(self, server: Server) -> None:
        unknown = regrade(status=201, estimate={**ESTIMATE, "cost_usd": None, "basis": "unknown", "sample": None})
        result = server.run("regrade", "run_1", "run_2", "--plan", "strict", "--estimate", answers=[unknown])
        assert result.exit_code == 0
        assert json.loads(server.script.bodies[0])["runs"] == ["run_1", "run_2"]
        assert "$" not in result.stdout

    @pytest.mark.parametrize("wrong", [("--stratify", "agent"), ("run_1", "--filter", "flag=x"), ("--sample", "0")])
    def test_words_that_do_not_fit_are_refused(self, server: Server, wrong: tuple[str, ...]) -> None:
        assert server.run("regrade", "--plan", "p", *wrong, answers=[]).exit_code == 2


def plan(**fields: Any) -> dict[str, Any]:
    spec = {"graders": [{"method": "llm_panel"}]}
    return {"id": "gpl_1", "name": "strict", "version": 2, "plan": "strict@2", "spec": spec, **fields}


def test_a_plan_is_read_from_a_file_or_standard_input(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"graders": [{"method": "llm_panel"}]}')
    result = server.run("plans", "put", "strict", str(file), answers=[httpx.Response(201, json=plan())])
    assert (result.exit_code, result.stdout) == (0, "strict@2: llm_panel\n")
    assert json.loads(server.script.bodies[0])["spec"] == {"graders": [{"method": "llm_panel"}]}
    again = server.run(
        "plans", "put", "strict", "-", answers=[httpx.Response(200, json=plan())], stdin='{"graders": []}'
    )
    assert again.exit_code == 0
    for wrong in ("[]", "{"):
        assert server.run("plans", "put", "strict", "-", answers=[], stdin=wrong).exit_code == 1


def test_plans_are_listed_and_shown(server: Server) -> None:
    listed = server.run("plans", "list", answers=[httpx.Response(200, json={"data": [plan()], "next": None})])
    assert "strict@2" in listed.stdout
    shown = server.run("plans", "show", "strict@2", answers=[httpx.Response(200, json=plan())])
    assert "llm_panel" in shown.stdout
    assert server.asked == [("GET", "/v1/grading-plans/strict@2")]


def test_a_run_can_be_graded_under_another_plan(server: Server) -> None:
    grading = {"id": "grd_1", "run_id": "run_1", "method": "llm_panel", "state": "pending"}
    answers = [httpx.Response(202, json={"data": [grading], "next": None})]
    result = server.run("grade", "run_1", "--plan", "strict@2", "--primary", "--detach", answers=answers)
    assert result.exit_code == 0
    assert json.loads(server.script.bodies[0]) == {"round": None, "plan": "strict@2", "primary": True}


def test_a_verdict_is_contested_overridden_and_left_alone_again(server: Server) -> None:
    review = {"id": "rvw_1", "grading_id": "grd_1", "kind": "override", "score": 1, "max_score": 4}
    made = [httpx.Response(201, json=review)]
    result = server.run("grade", "override", "grd_1", "1", "--reason", "no", "--author", "Ada", answers=made)
    assert "counts as 1/4" in result.stdout
    assert json.loads(server.script.bodies[0]) == {"score": 1.0, "max_score": None, "reason": "no", "author": "Ada"}
    assert server.run("grade", "contest", "grd_1", "--reason", "hm", answers=made).exit_code == 0
    assert server.run("grade", "withdraw", "rvw_1", answers=[httpx.Response(200, json=review)]).exit_code == 0
    assert server.asked == [("POST", "/v1/reviews/rvw_1/withdraw")]
    listed = server.run("grade", "reviews", "--run", "run_1", answers=[httpx.Response(200, json={"data": [review]})])
    assert "rvw_1" in listed.stdout


def test_votes_are_shown_and_tables_written(server: Server, tmp_path: Path) -> None:
    vote = {"judge": "m#1", "item": "r1", "n": 1, "state": "invalid", "cause": "canary_passed"}
    shown = server.run("grade", "votes", "grd_1", answers=[httpx.Response(200, json={"data": [vote]})])
    assert "canary_passed" in shown.stdout
    target = tmp_path / "votes.jsonl"
    words = ("grade", "export", str(target), "--table", "votes", "--format", "jsonl", "--filter", "plan=strict@2")
    assert server.run(*words, answers=[httpx.Response(200, content=b"{}\n")]).exit_code == 0
    assert target.read_bytes() == b"{}\n"
    (request,) = server.script.requests
    assert (request.url.path, request.url.query) == ("/v1/gradings/export.jsonl", b"plan=strict%402&table=votes")
