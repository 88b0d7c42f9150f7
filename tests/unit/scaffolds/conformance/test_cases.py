"""Which cases there are for whom, and what each calls wrong."""

from dataclasses import replace

import pytest

from service.domain.agents import Driver
from service.domain.errors import Invalid
from service.domain.models import TokenUsage
from service.domain.run_states import EndedBecause, Outcome
from service.models.scripted.scenario import Action
from service.models.scripted.shipped import SCENARIOS as SHIPPED
from service.scaffolds.conformance import judging
from service.scaffolds.conformance.cases import CASES, chosen
from service.scaffolds.conformance.scenarios import SCENARIOS
from service.scaffolds.conformance.screens import desktop_scenarios
from service.scaffolds.conformance.seen import Seen
from service.scaffolds.conformance.task import (
    INPUT,
    INSTRUCTION,
    REPORT_FILE,
    REPORT_SHA256,
    SUMMARY_FILE,
    SUMMARY_SHA256,
    task,
)

_USED = TokenUsage(input_tokens=1000, output_tokens=50)
_FILES = {REPORT_FILE: REPORT_SHA256, SUMMARY_FILE: SUMMARY_SHA256}
GOOD = Seen(
    Outcome.UNGRADED,
    EndedBecause.COMPLETED,
    3.0,
    _FILES,
    4,
    [200, 429],
    _USED,
    _USED,
    driver_events=["claimed", "finished"],
)


@pytest.mark.parametrize("case", [c for c in CASES if c.name in {"success", "429", "huge_output", "remote_success"}])
def test_what_completes_passes(case: object) -> None:
    judge = next(c.judge for c in CASES if c is case)
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"ended_because": EndedBecause.SCAFFOLD_ERROR}, "not as completed"),
        ({"files": {REPORT_FILE: REPORT_SHA256}}, "summary.md was not delivered"),
        ({"files": {**_FILES, REPORT_FILE: "0" * 64}}, "report.csv has other bytes"),
        ({"files": {**_FILES, REPORT_FILE: None}}, "report.csv has other bytes"),
        ({"counted": TokenUsage(input_tokens=999, output_tokens=50)}, "the ledger counted"),
        ({"unknown": 1}, "the ledger counted"),
        ({"asked": 0, "sent": TokenUsage(), "counted": TokenUsage()}, "never asked"),
    ],
)
def test_success_is_all_of_it(changed: dict[str, object], word: str) -> None:
    (wrong,) = judging.success(replace(GOOD, **changed))
    assert word in wrong


def test_a_rejected_key_is_not_the_agents_failure() -> None:
    ended = replace(GOOD, ended_because=EndedBecause.PROVIDER_UNAVAILABLE, files={})
    assert judging.refused(ended) == []
    for cause in (EndedBecause.SCAFFOLD_ERROR, EndedBecause.WALL_CLOCK, EndedBecause.COMPLETED):
        assert judging.refused(replace(ended, ended_because=cause))


def test_a_limit_that_never_came_proves_nothing() -> None:
    assert judging.waited(replace(GOOD, statuses=[200])) == ["the provider never answered 429"]


def test_a_stop_has_to_be_quick() -> None:
    ended = replace(GOOD, ended_because=EndedBecause.STOPPED, stop_s=5.0)
    assert judging.stopped(ended) == []
    assert judging.stopped(replace(ended, stop_s=judging.STOP_S + 1))
    assert judging.stopped(replace(ended, stop_s=None))
    assert judging.stopped(replace(ended, asked=0)) == ["the provider was never asked"]


def test_a_flood_has_to_stay_within_bounds() -> None:
    assert judging.flooded(replace(GOOD, output_bytes=1 << 30))
    assert judging.flooded(replace(GOOD, events=1_000_000))


def test_a_lease_has_to_be_lost_and_taken_again() -> None:
    assert judging.lease_lost(replace(GOOD, driver_events=["claimed", "lost", "claimed", "finished"])) == []
    assert "never lost" in judging.lease_lost(GOOD)[0]


def test_nobody_at_the_wheel_is_a_failure() -> None:
    assert judging.remote_timeout(replace(GOOD, ended_because=EndedBecause.WALL_CLOCK, driver_events=[])) == [
        "nobody claimed the run"
    ]


def test_cases_are_those_of_the_driver() -> None:
    assert [c.name for c in chosen([], Driver.KIT, screen=False, quick=False)] == [
        "success", "401", "429", "500", "timeout", "stop", "huge_output"
    ]  # fmt: skip
    assert chosen([], Driver.LOOP, screen=False, quick=False) == chosen([], Driver.KIT, screen=False, quick=False)
    assert all(c.name.startswith("remote_") for c in chosen([], Driver.REMOTE, screen=False, quick=False))


def test_named_ones_once_each_also_where_quick_is_asked_for() -> None:
    assert [c.name for c in chosen(["stop", "500", "stop"], Driver.KIT, screen=False, quick=True)] == ["stop", "500"]
    assert [c.name for c in chosen([], Driver.KIT, screen=False, quick=True)] == ["success", "401", "429"]


def test_unknown_cases_and_drivers_without_any_are_refused() -> None:
    with pytest.raises(Invalid, match="no case") as unknown:
        chosen(["remote_stop"], Driver.KIT, screen=False, quick=False)
    assert unknown.value.type == "unknown_case"
    with pytest.raises(Invalid) as nothing:
        chosen([], Driver.PERSON, screen=False, quick=False)
    assert nothing.value.type == "no_conformance"


def test_a_model_without_tools_can_pass_what_is_to_complete() -> None:
    known = {scenario.name: scenario for scenario in (*SHIPPED.values(), *SCENARIOS)}
    completing = [case for case in CASES if case.judge in {judging.success, judging.waited, judging.flooded}]
    assert len(completing) == 3
    for case in completing:
        assert f"### {REPORT_FILE}" in known[case.scenario].answers[-1], case.name


def test_every_case_has_a_scenario_that_exists() -> None:
    known = {*SHIPPED, *(scenario.name for scenario in (*SCENARIOS, *desktop_scenarios()))}
    assert {case.scenario for case in CASES} <= known


def test_the_instruction_asks_for_what_is_checked() -> None:
    made = task(60)
    assert made.instruction == INSTRUCTION
    assert made.visible[0].size_bytes == len(INPUT)
    success = next(s for s in SCENARIOS if s.name == "conformance-success")
    written = [step.write.path for step in success.steps if isinstance(step, Action) and step.write is not None]
    assert written == [f"/workspace/{SUMMARY_FILE}"]
    assert all(path in INSTRUCTION for path in _FILES)


def test_what_was_seen_reads_as_a_sentence() -> None:
    assert GOOD.words() == (
        "ended as completed; outcome ungraded; 3.0 s; 4 requests [200, 429]; files output/report.csv, "
        "output/summary.md; driver claimed finished"
    )


def test_a_screen_has_cases_of_its_own() -> None:
    named = [c.name for c in chosen([], Driver.LOOP, screen=True, quick=False)]
    assert named == [
        "401", "500", "desktop_success_anthropic", "desktop_success_openai", "desktop_success_gemini",
        "desktop_unknown_action", "desktop_timeout", "desktop_stop",
    ]  # fmt: skip
    remote = [c.name for c in chosen([], Driver.REMOTE, screen=True, quick=False)]
    assert remote == ["remote_success", "remote_timeout", "remote_stop", "remote_lease_lost", "remote_desktop"]
    with pytest.raises(Invalid):
        chosen(["desktop_stop"], Driver.LOOP, screen=False, quick=False)


def test_work_on_a_screen_needs_the_screen() -> None:
    for name in ("desktop_success_openai", "remote_desktop"):
        judge = next(c.judge for c in CASES if c.name == name)
        assert judge(replace(GOOD, batches=3)) == []
        assert judge(GOOD) == ["nothing was done on the screen of which there is a picture"]


def test_a_screens_work_is_told_in_every_providers_words() -> None:
    found = {scenario.name: scenario for scenario in desktop_scenarios()}
    assert {c.scenario for c in CASES if c.name.startswith("desktop_")} <= found.keys()
    native = {"anthropic.20251124", "openai.computer", "gemini.3_5", "workstead.unified"}
    for scenario in found.values():
        for step in scenario.steps:
            assert isinstance(step, Action)
            assert step.computer is not None
            assert native <= step.computer.payloads.keys()
