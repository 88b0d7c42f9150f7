"""Commands, exit codes, doctor and the demo's judgement, without a server."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.unit.workstead.fake_api import Script, client, run_body, sse
from workstead.cli import demo, leftovers
from workstead.cli.app import app
from workstead.cli.common import labels_of
from workstead.cli.figures import figures
from workstead.cli.run import submit
from workstead.cli.tables import left_out
from workstead.cli.watch import watch
from workstead.models import Run

runner = CliRunner()


def made(run_id: str = "run_1", **changes: Any) -> Run:
    return Run.model_validate(run_body(run_id, **changes))


def graded(label: str, score: float, run_id: str = "run_1") -> Run:
    verdict = {"state": "graded", "score": score, "max_score": 9, "fraction": score / 9}
    return made(run_id, phase="done", outcome="graded", agent={"id": "a", "label": label}, verdict=verdict)


def test_every_command_has_help() -> None:
    for words in (["run"], ["runs", "list"], ["runs", "events"], ["artifacts", "get"], ["token", "create"], ["serve"]):
        result = runner.invoke(app, [*words, "--help"])
        assert result.exit_code == 0, words


def test_without_a_server_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEAD_DATA_DIR", str(tmp_path))
    result = runner.invoke(app, ["runs", "list"])
    assert result.exit_code == 1
    assert "workstead serve" in result.stderr


def test_run_without_an_agent_is_wrong_usage(tmp_path: Path) -> None:
    assert runner.invoke(app, ["run", str(tmp_path)]).exit_code == 2


def test_labels() -> None:
    assert labels_of(["a=b=c", "x="]) == {"a": "b=c", "x": ""}


async def test_submission_is_in_breadth() -> None:
    script = Script(*[httpx.Response(201, json=run_body(f"run_{i}")) for i in range(4)])
    async with client(script) as api:
        await submit(api, ["task_1"], ["a", "b"], 2, {})
    assert [(b'"sample":1' in body, b'"agent":"a"' in body) for body in script.bodies] == [
        (True, True), (True, False), (False, True), (False, False),
    ]  # fmt: skip


async def test_watching_ends_with_the_runs_as_they_ended() -> None:
    stream = httpx.Response(200, content=sse(1, 2, end=True))
    script = Script(stream, httpx.Response(200, json=run_body(phase="done", outcome="graded")))
    heard: list[int] = []
    async with client(script) as api:
        runs = await watch(api, [made()], lambda _w, event: heard.append(event.seq))
    assert heard == [1, 2]
    assert runs[0].outcome == "graded"


def test_what_has_no_score_is_counted_by_cause() -> None:
    runs = [made(phase="done", outcome="ungraded", ended_because="sandbox_lost")] * 2 + [graded("a", 9)]
    assert left_out(figures(runs)) == "2 ungraded (sandbox_lost)"


class TestDemo:
    def runs(self, solver: float, nop: float) -> list[Run]:
        scores = {"demo-solver@1": solver, "demo-nop@1": nop}
        kinds = [(label, scores.get(label, 9.0)) for label in demo.AGENTS]
        return [graded(label, score) for label, score in kinds for _ in range(3)]

    def test_right_verdicts(self) -> None:
        assert demo.unexpected(self.runs(9, 0), demo.AGENTS) == []

    @pytest.mark.parametrize(("solver", "nop"), [(8, 0), (9, 9)])
    def test_wrong_verdicts(self, solver: float, nop: float) -> None:
        assert len(demo.unexpected(self.runs(solver, nop), demo.AGENTS)) == 3

    def test_a_run_without_a_score_or_a_missing_run_is_wrong(self) -> None:
        runs = self.runs(9, 0)
        assert demo.unexpected(runs[1:], demo.AGENTS)
        assert demo.unexpected([*runs[1:], made(phase="done", outcome="ungraded")], demo.AGENTS)


def test_leftovers_sees_nothing_where_nothing_is(tmp_path: Path) -> None:
    assert leftovers.leftovers(tmp_path / "never-used") == []
