"""What a preflight tries out: each shared thing once, and what the end of a run says."""

from typing import Any, cast

import pytest

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.models import Dialect, ModelSpec
from service.domain.run_states import EndedBecause
from service.lifecycle.operations.preflight.checks import Ask, Member, asks_of, count_trials, trials_of
from service.lifecycle.operations.preflight.findings import MOST_PROBLEMS, Findings
from service.lifecycle.operations.preflight.task import NAME, problem, task
from service.store.rows import RunRow
from service.store.rows_requests import ModelRequestRow


class _Row:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def member(number: int, scaffold: str = "s", kind: str = "nop", model: str | None = None, **settings: Any) -> Member:
    spec = AgentSpec(scaffold=f"{scaffold}@1", model=model, settings=settings)
    manifest = ScaffoldManifest(name=scaffold, version="1", kind=kind)
    return Member(f"agt_{number}", f"label {number}", spec, f"scf_{scaffold}", manifest)


def model(name: str, *efforts: str) -> ModelSpec:
    fields: dict[str, Any] = {
        "provider": "lab",
        "upstream_id": name,
        "dialect": Dialect.OPENAI,
        "base_url": "https://lab",
    }
    return ModelSpec(name=name, efforts=list(efforts), **fields)


class TestAsks:
    def test_a_model_at_an_effort_is_asked_once_for_all_its_agents(self) -> None:
        members = [
            member(1, model="m", effort="high"),
            member(2, "other", model="m", effort="high"),
            member(3, model="m"),
        ]
        found = asks_of(members, {"m": model("m", "low", "high")})
        assert found == {Ask("m", "high"): ["agt_1", "agt_2"], Ask("m"): ["agt_3"]}

    def test_the_most_is_what_the_model_knows_as_the_greatest(self) -> None:
        known = {"m": model("m", "low", "high"), "n": model("n", "high", "max"), "p": model("p")}
        members = [member(i, model=name, effort="max") for i, name in enumerate(known)]
        assert [*asks_of(members, known)] == [Ask("m", "high"), Ask("n", "max"), Ask("p")]

    def test_side_models_are_asked_without_an_effort(self) -> None:
        found = asks_of([member(1, model="m", effort="high", side_models=["small", "m"])], {"m": model("m", "high")})
        assert [*found] == [Ask("m", "high"), Ask("small")]

    def test_an_agent_without_a_model_asks_nobody(self) -> None:
        assert asks_of([member(1)], {}) == {}


class TestTrials:
    def test_a_scaffold_is_tried_once_in_each_environment(self) -> None:
        members = [member(1, "s"), member(2, "s", model="m"), member(3, "t")]
        found = trials_of(members, ["base", "rare"])
        assert [(str(one), one.agents) for one in found] == [
            ("s@1 in base", ("agt_1", "agt_2")),
            ("t@1 in base", ("agt_3",)),
            ("s@1 in rare", ("agt_1", "agt_2")),
            ("t@1 in rare", ("agt_3",)),
        ]

    def test_the_limit_leaves_each_scaffold_its_commonest_environment(self) -> None:
        members = [member(n, f"s{n}") for n in range(3)]
        places = [f"env{n}" for n in range(50)]
        found = trials_of(members, places, most=4)
        assert [str(one) for one in found] == ["s0@1 in env0", "s1@1 in env0", "s2@1 in env0", "s0@1 in env1"]
        assert count_trials(members, places) == 150

    @pytest.mark.parametrize("kind", ["remote", "person", "external"])
    def test_what_nobody_of_ours_drives_is_not_tried(self, kind: str) -> None:
        assert trials_of([member(1, kind=kind)], ["base"]) == []
        assert count_trials([member(1, kind=kind)], ["base"]) == 0

    def test_surfaces_are_apart(self) -> None:
        members = [
            member(1, kind="computer_use", model="m"),
            member(2, kind="computer_use", model="m", surface="browser"),
        ]
        assert len(trials_of(members, ["base"])) == 2


def test_the_task_of_an_environment_is_always_the_same() -> None:
    assert task("base").digest() == task("base").digest() != task("workbench").digest()
    assert task("base").name == NAME
    assert task("base").limits.wall_clock_s == 120


def run(because: EndedBecause | None) -> RunRow:
    return cast(RunRow, _Row(ended_because=because, outcome="ungraded"))


def request(status: int | None, error: str | None = None) -> ModelRequestRow:
    return cast(ModelRequestRow, _Row(status=status, error=error, requested_model="m"))


@pytest.mark.parametrize(
    ("because", "statuses", "said"),
    [
        (EndedBecause.COMPLETED, [200], ""),
        (EndedBecause.COMPLETED, [], ""),
        (EndedBecause.COMPLETED, [404, 200], ""),
        (EndedBecause.COMPLETED, [200, 429], ""),
        (EndedBecause.WALL_CLOCK, [200], ""),
        (EndedBecause.WALL_CLOCK, [None], ""),
        (EndedBecause.COMPLETED, [404], "m answered 404 no such model"),
        (EndedBecause.WALL_CLOCK, [500, 400], "m answered 400 no such model"),
        (EndedBecause.SCAFFOLD_ERROR, [], "ended as scaffold_error: the last words"),
        (EndedBecause.PROVISION_FAILED, [], "ended as provision_failed: the last words"),
        (EndedBecause.SCAFFOLD_ERROR, [401], "ended as scaffold_error: m answered 401 no such model: the last words"),
        (None, [], "ended as ungraded: the last words"),
    ],
)
def test_what_the_end_of_a_run_says(because: EndedBecause | None, statuses: list[int | None], said: str) -> None:
    assert problem(run(because), [request(one, "no such model") for one in statuses], " the last words\n") == said


class TestFindings:
    def test_what_is_wrong_with_one_agent_is_not_with_another(self) -> None:
        found = Findings("op_1", {"a": [], "b": []})
        assert found.ok
        found.wrong(["a"], "model m", "HTTP 404: " + "x" * 5000)
        assert (found.ok, found.fine("a"), found.fine("b")) == (False, False, True)
        said = found.as_json()
        assert said["agents"]["b"] == {"ok": True, "problems": []}
        assert len(said["agents"]["a"]["problems"][0]["detail"]) == 2000
        assert said["operation_id"] == "op_1"

    def test_a_judge_that_fails_is_enough(self) -> None:
        found = Findings("op_1", {"a": []})
        found.judge("m#1", "m", "")
        assert found.ok
        found.judge("n#1", "n", "no key")
        assert not found.ok

    def test_problems_are_bounded(self) -> None:
        found = Findings("op_1", {"a": []})
        for n in range(100):
            found.wrong(["a"], f"run {n}", "x")
        assert len(found.agents["a"]) == MOST_PROBLEMS
