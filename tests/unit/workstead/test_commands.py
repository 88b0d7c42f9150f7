"""What each command asks the service for, prints and exits with."""

import json
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from tests.unit.workstead.commands import Server
from tests.unit.workstead.fake_api import problem, run_body, sse
from workstead.cli.options import duration

GRADED = {"state": "graded", "score": 1, "max_score": 1, "fraction": 1.0}
AGENT = {"id": "agt_1", "label": "solver", "digest": "d"}
HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]text[/red]\u202e"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def ok(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def page(*items: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"data": list(items), "next": None})


def done(run_id: str = "run_1", outcome: str = "graded", **changes: Any) -> dict[str, Any]:
    verdict = GRADED if outcome == "graded" else {"state": "failed"}
    return run_body(run_id, phase="done", outcome=outcome, ended_because="completed", verdict=verdict, **changes)


class TestRun:
    def answers(self, end: dict[str, Any]) -> list[Any]:
        task = ok(id="task_1", name="demo/one", digest="d", manifest={})
        stream = httpx.Response(200, content=sse(1, 2, end=True))
        return [task, httpx.Response(201, json=run_body()), stream, ok(**end)]

    @pytest.mark.parametrize(("outcome", "code"), [("graded", 0), ("ungraded", 3), ("cancelled", 3)])
    def test_exit_code_says_whether_all_have_a_score(self, server: Server, outcome: str, code: int) -> None:
        answers = self.answers(done(outcome=outcome))
        result = server.run("run", "task_1", "-a", "solver", "--no-download", answers=answers)
        assert result.exit_code == code, result.output
        assert server.script.left == 0
        assert "Verdicts" in result.stdout

    def test_what_is_asked_for_is_submitted(self, server: Server) -> None:
        words = [
            "run",
            "task_1",
            "-a",
            "solver",
            "--priority",
            "7",
            "--label",
            "week=48",
            "--label",
            "batch=b",
            "--no-download",
        ]
        assert server.run(*words, answers=self.answers(done())).exit_code == 0
        body = json.loads(server.script.bodies[1])
        assert (body["priority"], body["labels"]) == (7, {"week": "48", "batch": "b"})

    def test_json_is_all_that_standard_output_has(self, server: Server) -> None:
        result = server.run("run", "task_1", "-a", "solver", "--json", answers=self.answers(done()))
        body = json.loads(result.stdout)
        assert body["runs"][0]["id"] == "run_1"
        assert body["agents"]["solver"]["passed"] == 1

    def test_detached_runs_are_named_and_can_be_found_again(self, server: Server) -> None:
        result = server.run("run", "task_1", "-a", "solver", "--detach", answers=self.answers(done())[:2])
        assert result.exit_code == 0
        assert result.stdout.split() == ["run_1"]
        batch = json.loads(server.script.bodies[1])["labels"]["batch"]
        assert f"runs watch --label batch={batch}" in result.stderr

    def test_a_service_that_stays_away_is_not_the_end_of_the_runs(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("workstead.cli.watch.PATIENCE_S", -1)
        monkeypatch.setattr("workstead._async.events.CONNECTIONS_WITHOUT_NEWS", 0)
        answers = [*self.answers(done())[:2], httpx.ConnectError("away")]
        result = server.run("run", "task_1", "-a", "solver", answers=answers)
        assert result.exit_code == 1
        assert "the runs go on" in result.stderr

    def test_a_service_that_comes_back_is_waited_for(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workstead._async.events.CONNECTIONS_WITHOUT_NEWS", 0)
        task, made, stream, end = self.answers(done())
        answers = [task, made, httpx.ConnectError("away"), httpx.ConnectError("away"), stream, end]
        assert server.run("run", "task_1", "-a", "solver", "--no-download", answers=answers).exit_code == 0

    def test_naming_nothing_is_wrong_usage(self, server: Server) -> None:
        assert server.run("run", "-a", "solver", answers=[]).exit_code == 2
        assert server.run("run", "task_1", answers=[]).exit_code == 2


class TestRuns:
    def test_filters_reach_the_api(self, server: Server) -> None:
        words = ["runs", "list", "--phase", "queued", "--phase", "held", "--agent", "solver", "--label", "a=b"]
        words += ["--filter", "facet.split=easy", "--filter", "sort=-score", "--json"]
        result = server.run(*words, answers=[page(AGENT), page(run_body(hold={"reason": "no_host"}))])
        assert json.loads(result.stdout)["hold"] == {"reason": "no_host"}
        query = server.script.requests[1].url.params
        assert query.get_list("phase") == ["queued", "held"]
        asked = {key: query[key] for key in ("agent_id", "label.a", "facet.split", "sort")}
        assert asked == {"agent_id": "agt_1", "label.a": "b", "facet.split": "easy", "sort": "-score"}

    def test_an_unknown_agent_is_said(self, server: Server) -> None:
        result = server.run("runs", "list", "--agent", "nobody", answers=[page(AGENT)])
        assert result.exit_code == 1
        assert "no agent 'nobody'" in result.stderr

    def test_what_holds_a_run_is_in_the_list(self, server: Server) -> None:
        hold = {"reason": "waiting_for_memory", "detail": "needs 8 GB, 6 free", "position": 3}
        result = server.run("runs", "list", answers=[page(run_body(hold=hold))])
        assert "needs 8 GB, 6 free; place 3 in the queue" in result.stdout

    def test_stop_by_filter_asks_first(self, server: Server) -> None:
        listed = page(run_body("run_1"), done("run_2"))
        refused = server.run("runs", "stop", "--label", "a=b", answers=[listed], stdin="n\n")
        assert refused.exit_code == 1
        assert server.asked == [("GET", "/v1/runs")]
        stopped = server.run(
            "runs", "stop", "--label", "a=b", "--yes", "--mode", "discard", answers=[listed, ok(**run_body())]
        )
        assert stopped.exit_code == 0
        assert server.asked[1:] == [("POST", "/v1/runs/run_1/stop")]
        assert json.loads(server.script.bodies[1]) == {"mode": "discard"}

    def test_a_dry_run_stops_nothing(self, server: Server) -> None:
        result = server.run("runs", "stop", "--label", "a=b", "--dry-run", answers=[page(run_body())])
        assert "1 runs would be asked to stop" in result.stderr
        assert [method for method, _ in server.asked] == ["GET"]

    @pytest.mark.parametrize("words", [[], ["run_1", "--label", "a=b"]])
    def test_stop_needs_exactly_one_way_of_choosing(self, server: Server, words: list[str]) -> None:
        assert server.run("runs", "stop", *words, answers=[]).exit_code == 2

    def test_show_tells_verdict_attempts_and_problems(self, server: Server) -> None:
        attempt = {"run_id": "run_1", "n": 1, "state": "released", "ended_because": "sandbox_lost", "host_id": "h"}
        grading = {
            "id": "grd_1", "method": "test_cases", "state": "graded", "score": 1, "max_score": 2, "criteria_total": 102,
            "criteria": [{"id": "t1", "passed": False, "score": 0, "max_score": 1, "cause": "wall_clock", "reason": HOSTILE}],
        }  # fmt: skip
        artifact = {"path": f"a{HOSTILE}", "size_bytes": 3, "problems": ["truncated"]}
        answers = [ok(**done()), page(attempt), page(grading), page(artifact)]
        result = server.run("runs", "show", "run_1", answers=answers)
        assert result.exit_code == 0, result.output
        for said in ("sandbox_lost", "t1: 0/1 wall_clock", "101 more", "[truncated]", "[red]text[/red]"):
            assert said in result.stdout
        assert "\x1b" not in result.stdout
        assert "\u202e" not in result.stdout

    def test_show_as_json_is_one_object_and_cannot_steer_a_terminal(self, server: Server) -> None:
        answers = [ok(**done()), page(), page(), page({"path": HOSTILE})]
        result = server.run("runs", "show", "run_1", "--json", answers=answers)
        assert json.loads(result.stdout)["artifacts"][0]["path"] == HOSTILE
        assert result.stdout.isascii()
        assert "\x1b" not in result.stdout

    def test_events_by_type(self, server: Server) -> None:
        events = page({"seq": 4, "type": "note", "payload": {"text": "x"}})
        result = server.run(
            "runs", "events", "run_1", "--types", "note,verdict", "--json", answers=[ok(**run_body()), events, page()]
        )
        assert json.loads(result.stdout)["seq"] == 4
        assert server.script.requests[1].url.params["types"] == "note,verdict"
        assert server.script.requests[2].url.params["after"] == "4"


class TestLogs:
    def test_a_sealed_log_is_printed_safely(self, server: Server) -> None:
        raw = "é".encode() * 40_000 + HOSTILE.encode() + b"\xff end\n"
        result = server.run(
            "runs", "logs", "run_1", answers=[ok(**run_body(attempt=2)), httpx.Response(200, content=raw)]
        )
        assert result.exit_code == 0, result.output
        assert server.asked[1] == ("GET", "/v1/runs/run_1/attempts/2/logs/stdout")
        assert result.stdout.count("é") == 40_000
        assert result.stdout.endswith("[red]text[/red]\ufffd end\n")
        assert "\x1b" not in result.stdout

    def test_a_live_one_comes_from_the_events(self, server: Server) -> None:
        def output(seq: int, text: str, stream: str = "stdout", attempt: int = 1) -> dict[str, Any]:
            return {"seq": seq, "attempt": attempt, "type": "output", "payload": {"stream": stream, "text": text}}

        events = [
            output(1, "one "),
            output(2, "no", "stderr"),
            output(3, f"two{HOSTILE}"),
            output(4, "later", attempt=2),
        ]
        answers = [ok(**run_body(attempt=1)), problem(409, "log_not_sealed"), page(*events)]
        result = server.run("runs", "logs", "run_1", answers=answers)
        assert result.stdout == "one two[red]text[/red]"
        answers = [ok(**run_body(attempt=2)), problem(409, "log_not_sealed"), page(*events), page()]
        assert server.run("runs", "logs", "run_1", answers=answers).stdout == "later"

    def test_every_byte_goes_to_a_file_and_never_over_one(self, server: Server, tmp_path: Path) -> None:
        answers = [ok(**run_body(attempt=1)), httpx.Response(200, content=b"\x1b[2J\x00")]
        target = tmp_path / "log"
        assert server.run("runs", "logs", "run_1", "-o", str(target), answers=answers).exit_code == 0
        assert target.read_bytes() == b"\x1b[2J\x00"
        again = server.run("runs", "logs", "run_1", "-o", str(target), answers=[ok(**run_body(attempt=1))])
        assert again.exit_code == 1

    def test_before_the_first_attempt(self, server: Server) -> None:
        result = server.run("runs", "logs", "run_1", answers=[ok(**run_body())])
        assert "has not started yet (queued)" in result.stderr


class TestArtifacts:
    def test_all_of_them_below_a_new_folder(self, server: Server, tmp_path: Path) -> None:
        entries = [{"path": "output/a"}, {"path": "../escape"}, {"path": "d", "kind": "directory"}]
        folder = tmp_path / "new"
        words = ["artifacts", "get", "run_1", "--all", "-o", str(folder)]
        result = server.run(*words, answers=[page(*entries), httpx.Response(200, content=b"A")])
        assert result.exit_code == 1  # one name cannot be written here
        assert "escape" in result.stderr
        assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()] == ["new/output/a"]
        assert server.run(*words, answers=[]).exit_code == 1  # never into what is there

    @pytest.mark.parametrize("words", [[], ["a", "--all"], ["--all", "--zip"]])
    def test_one_way_of_naming(self, server: Server, words: list[str]) -> None:
        assert server.run("artifacts", "get", "run_1", *words, answers=[]).exit_code == 2

    def test_zip(self, server: Server, tmp_path: Path) -> None:
        target = tmp_path / "x.zip"
        words = ["artifacts", "get", "run_1", "--zip", "-o", str(target)]
        assert server.run(*words, answers=[httpx.Response(200, content=b"PK")]).exit_code == 0
        assert server.asked == [("GET", "/v1/runs/run_1/archive.zip")]
        assert target.read_bytes() == b"PK"


class TestGrade:
    def grading(self, state: str) -> dict[str, Any]:
        return {"id": "grd_1", "run_id": "run_1", "method": "exact", "state": state, "round": 2, "cause": HOSTILE}

    @pytest.mark.parametrize(("state", "code"), [("graded", 0), ("failed", 3), ("abstained", 3)])
    def test_waits_for_the_verdict(self, server: Server, state: str, code: int) -> None:
        answers = [page(self.grading("pending")), ok(**self.grading("grading")), ok(**self.grading(state))]
        result = server.run("grade", "run_1", answers=answers)
        assert result.exit_code == code, result.output
        assert json.loads(server.script.bodies[0]) == {"round": None}
        assert "\x1b" not in result.stdout

    def test_a_round_by_its_number(self, server: Server) -> None:
        assert (
            server.run("grade", "run_1", "--round", "4", "--detach", answers=[page(self.grading("pending"))]).exit_code
            == 0
        )
        assert json.loads(server.script.bodies[0]) == {"round": 4}
        assert server.run("grade", "run_1", "--round", "next", answers=[]).exit_code == 2


class TestTokens:
    def test_the_secret_is_all_that_standard_output_has(self, server: Server) -> None:
        made = httpx.Response(201, json={"id": "tok_1", "scopes": ["runs:read"], "secret": "wst_new"})
        words = ["token", "create", "--scope", "runs:read", "--expires-in", "2h"]
        result = server.run(*words, answers=[made])
        assert result.stdout == "wst_new\n"
        body = json.loads(server.script.bodies[0])
        assert body["scopes"] == ["runs:read"]
        assert body["expires_at"].endswith("+00:00")

    def test_making_one_is_never_repeated_by_itself(self, server: Server) -> None:
        assert server.run("token", "create", answers=[httpx.ReadError("cut")]).exit_code == 1
        assert len(server.asked) == 1

    def test_list_and_revoke(self, server: Server) -> None:
        result = server.run("token", "list", answers=[page({"id": "tok_1", "note": HOSTILE, "scopes": ["admin"]})])
        assert "tok_1" in result.stdout
        assert "\x1b" not in result.stdout
        assert server.run("token", "revoke", "tok_1", answers=[httpx.Response(204)]).exit_code == 0
        assert server.asked == [("DELETE", "/v1/tokens/tok_1")]

    def test_config_never_shows_the_token(self, server: Server) -> None:
        result = server.run("config", answers=[])
        assert "http://there" in result.stdout
        assert "wst_secret" not in result.stdout

    @pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000)])
    def test_durations(self, text: str, seconds: int) -> None:
        assert duration(text).total_seconds() == seconds


class TestOperators:
    def test_hosts(self, server: Server) -> None:
        host = {
            "id": "h1", "state": "up", "cordoned": True, "slots": 4, "slots_limit": 2, "used": 1,
            "memory": {"promised_bytes": 1 << 30, "usable_bytes": 4 << 30}, "disk": {"free_bytes": None},
            "reasons": [{"reason": "cordoned", "detail": "an operator cordoned it"}],
        }  # fmt: skip
        listed = server.run("hosts", "list", answers=[page(host)])
        for said in ("up, cordoned", "1/2", "1.0 GiB of 4.0 GiB", "an operator cordoned it"):
            assert said in listed.stdout
        assert server.run("hosts", "cordon", "h1", answers=[ok(**host)]).exit_code == 0
        assert json.loads(server.script.bodies[0]) == {"cordoned": True}
        assert server.run("hosts", "uncordon", "h1", answers=[ok(**host)]).exit_code == 0
        assert json.loads(server.script.bodies[0]) == {"cordoned": False}
        assert server.run("hosts", "drain", "h1", "--stop-worker", answers=[ok(**host)]).exit_code == 0
        assert json.loads(server.script.bodies[0]) == {"stop_worker": True}
        assert server.run("hosts", "slots", "h1", answers=[ok(**host)]).exit_code == 0
        assert json.loads(server.script.bodies[0]) == {"slots_limit": None}

    def test_projects_by_name(self, server: Server) -> None:
        project = {"id": "prj_1", "name": "lab", "untrusted": False, "max_runs": None}
        words = ["project", "set", "lab", "--max-runs", "none", "--untrusted"]
        assert server.run(*words, answers=[page(project), ok(**project)]).exit_code == 0
        assert server.asked[1] == ("PATCH", "/v1/projects/prj_1")
        assert json.loads(server.script.bodies[1]) == {"max_runs": None, "untrusted": True}
        assert server.run("project", "set", "lab", answers=[]).exit_code == 2
        assert server.run("project", "set", "other", "--trusted", answers=[page(project)]).exit_code == 1

    def test_operations(self, server: Server) -> None:
        operation = {"id": "op_1", "kind": "benchmark_import", "state": "failed", "done": 3, "total": 9, "ended_at": "2026-01-05T09:00:00Z",
                     "problem": {"type": "x", "detail": HOSTILE}, "log": [{"at": "now", "text": HOSTILE}]}  # fmt: skip
        result = server.run("operations", "show", "op_1", answers=[ok(**operation)])
        assert result.exit_code == 1
        assert "3 of 9 items" in result.stdout
        assert "\x1b" not in result.stdout


class TestWebhooks:
    HOOK: ClassVar[dict[str, Any]] = {"id": "whk_1", "url": "https://x", "events": ["*"], "secret": "whsec_new"}

    def test_the_secret_is_all_that_standard_output_has(self, server: Server) -> None:
        words = ["webhooks", "create", "https://x", "--event", "run.done", "--label", "a=b", "--note", "n"]
        result = server.run(*words, answers=[httpx.Response(201, json=self.HOOK)])
        assert result.stdout == "whsec_new\n"
        assert json.loads(server.script.bodies[0]) == {
            "url": "https://x",
            "events": ["run.done"],
            "labels": {"a": "b"},
            "note": "n",
        }
        assert server.run("webhooks", "rotate", "whk_1", answers=[ok(**self.HOOK)]).stdout == "whsec_new\n"

    def test_lists_show_no_secret_and_no_escape(self, server: Server) -> None:
        hook = {**self.HOOK, "note": HOSTILE, "failures": 3, "enabled": False}
        result = server.run("webhooks", "list", answers=[page(hook)])
        assert "disabled after 3 failures" in result.stdout
        assert "whsec_" not in result.stdout
        delivery = {"id": "msg_1", "type": "run.done", "state": "dead", "last_error": HOSTILE}
        result = server.run("webhooks", "deliveries", "whk_1", "--state", "dead", answers=[page(delivery)])
        assert "\x1b" not in result.stdout
        assert server.script.requests[0].url.params["state"] == "dead"

    @pytest.mark.parametrize(
        ("words", "asked"),
        [
            (["test", "whk_1"], ("POST", "/v1/webhooks/whk_1/test")),
            (["redeliver", "whk_1", "msg_1"], ("POST", "/v1/webhooks/whk_1/deliveries/msg_1/redeliver")),
            (["enable", "whk_1"], ("PATCH", "/v1/webhooks/whk_1")),
            (["disable", "whk_1"], ("PATCH", "/v1/webhooks/whk_1")),
            (["delete", "whk_1"], ("DELETE", "/v1/webhooks/whk_1")),
        ],
    )
    def test_each_command_asks_for_its_own(self, server: Server, words: list[str], asked: tuple[str, str]) -> None:
        assert server.run("webhooks", *words, answers=[ok(id="x", type="t", state="pending")]).exit_code == 0
        assert server.asked == [asked]


@pytest.mark.parametrize("words", [["whoami"], ["runs", "list"], ["hosts", "list"], ["operations", "list"]])
def test_a_problem_is_one_message_without_a_traceback(server: Server, words: list[str]) -> None:
    result = server.run(*words, answers=[problem(403, "scope_missing", detail=f"this needs admin{HOSTILE}")])
    assert result.exit_code == 1
    assert "scope_missing (403): this needs admin" in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["runs", "show", "run_1"], ok(id=7)),
        (["runs", "show", "run_1"], httpx.Response(200, content=b"<html>")),
        (["runs", "list"], page({"id": {}})),
        (["hosts", "list"], ok(rows=[])),
    ],
)
def test_an_answer_that_makes_no_sense_is_one_message(server: Server, words: list[str], answer: httpx.Response) -> None:
    result = server.run(*words, answers=[answer])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.strip()
