"""The report of PayWorthy over a small made-up world: 60 jobs, one agent with and one without tools, three forecasters."""

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from service.domain.errors import Invalid
from service.domain.reports import ReportSettings, ReportTable
from service.reporting.ranking import auc
from service.reporting.reports.payworthy import payworthy
from service.reporting.reports.payworthy_forecasts import compared_with
from tests.unit.reporting.reports.world import START, World, header, named, row

JOBS = 60
PROMPTS = ("generic", "limits", "drop_1", "only_1", "placebo")
FIELDS = ("produced", "on_spec", "client_plausible", "pay_worthy", "fabricated")


def accepted(n: int) -> bool:
    return n % 2 == 0


def made(**changes: Any) -> World:
    """Every second job is accepted; forecaster ``good`` knows it with limits, ``noise`` never."""
    world = World()
    world.agent("base")
    world.agent("tools", scaffold="tool_agent")
    draw = random.Random(1)
    for n in range(JOBS):
        facets = {"category": "writing" if n % 3 else "design", "pay_type": "fixed" if n % 2 else "hourly"}
        needs = "client_files" if n < 20 else "self_contained"
        world.task(f"t{n:03}", facets | {"needs": needs}, price_usd=None if n == 0 else 100.0 * (1 + n % 2))
    for n in range(JOBS):
        _judged(world, "base", n, accepted(n))
        _judged(world, "tools", n, accepted(n) or n < 20)
    for n in range(JOBS):
        for prompt in PROMPTS:
            near = 0.6 if prompt in {"limits", "drop_1"} else 0.1
            p = min(1.0, max(0.0, 0.2 + near * accepted(n) + 0.4 * draw.random()))
            forecast(world, n, "good#1", prompt, p)
            forecast(world, n, "noise#1", prompt, draw.random())
    forecast(world, 0, "broken#1", "limits", None, state="excluded", cause="not_json", asks=2)
    for n in range(1, JOBS):
        forecast(world, n, "broken#1", "limits", draw.random())
    return world


def _judged(world: World, agent: str, n: int, good: bool) -> None:
    run = world.run(agent, f"t{n:03}", float(good))
    label = None if good else "wrong_scope" if n % 3 else "capability_gap"
    cause = None if good else "scoping" if n % 3 else "execution"
    judges = [
        {"judge": "a#1", "fields": {"pay_worthy": good}},
        {"judge": "b#1", "fields": {"pay_worthy": good if n % 5 else not good}},
    ]
    detail = {"accepted": good, "label": label, "cause": cause, "unanimous": bool(n % 5), "judges": judges}
    grading = world.verdict(run, method="llm_panel", score=float(good), max_score=1.0, detail=detail)
    for place, name in enumerate(FIELDS):
        value = name == "produced" or (good and name != "fabricated")
        world.add(
            "criteria", grading_id=grading, run_id=run, position=place, criterion=name, passed=value, score=0.0,
            max_score=0.0, detail={"value": value},
        )  # fmt: skip


def forecast(world: World, n: int, who: str, prompt: str, p: float | None, **values: Any) -> None:
    place = len(world.rows["forecasts"])
    plain: dict[str, Any] = {
        "forecast_id": f"fc_{place:05}", "set_id": "fcs_1", "set_name": "all", "agent_id": "base",
        "variant": prompt, "with_reason": False, "system": "neutral", "source": "asked", "state": "ok", "asks": 1,
        "made_at": START + timedelta(seconds=place), "first_attempt_at": START + timedelta(days=1),
        "made_before_attempt": True, "context_dependence": 1 + n % 5, "verifiability": 3, "autonomy_horizon": 2,
        "tool_credential_surface": 0, "deliverable_modality": 1, "usage": {"input_tokens": 100, "output_tokens": 10},
        "cost_usd": 0.001, "model": who.partition("#")[0], "template_sha256": "f" * 64,
    }  # fmt: skip
    world.add("forecasts", task_id=f"t{n:03}", forecaster=who, prompt=prompt, p_hat=p, **(plain | values))


def report(world: World, **options: Any) -> list[ReportTable]:
    return payworthy(world.tables(), header(), ReportSettings(options=options))


@pytest.fixture(scope="module")
def tables() -> list[ReportTable]:
    return report(
        made(), base_agent="base", tool_agent="tools", corpus_shares={"writing": 0.5, "design": 0.5},
        families={"good": "A", "a": "A", "noise": "B", "b": "B"}, top_shares=[0.5],
    )  # fmt: skip


def test_acceptance_by_category_and_pay_type_and_dollars(tables: list[ReportTable]) -> None:
    found = named(tables, "acceptance")
    whole = row(found, agent="base", by="all")
    assert (whole["jobs"], whole["accepted"], whole["priced"]) == (JOBS, 0.5, JOBS - 1)
    # 29 accepted jobs of 100 dollars with a price, 30 rejected ones of 200
    assert whole["accepted_usd"] == pytest.approx(2900 / 8900)
    assert whole["accepted_low"] < 0.5 < whole["accepted_high"]
    assert row(found, agent="base", group="hourly")["accepted"] == 1.0
    assert row(found, agent="base", group="design")["jobs"] == 20
    assert row(found, agent="base", group="reweighted to the corpus")["accepted"] == pytest.approx(0.5)
    assert found.settings["draws"] == 2000


def test_criteria_and_causes(tables: list[ReportTable]) -> None:
    rates = named(tables, "criterion_rates")
    assert row(rates, agent="base", criterion="produced")["rate"] == 1.0
    assert row(rates, agent="base", criterion="fabricated")["rate"] == 0.0
    causes = named(tables, "rejection_causes")
    mine = [r for r in causes.rows if r["agent"] == "base"]
    assert sum(int(str(r["jobs"])) for r in mine) == 30
    assert {(r["cause"], r["label"]) for r in mine} == {("scoping", "wrong_scope"), ("execution", "capability_gap")}


def test_forecasters_and_what_was_left_out(tables: list[ReportTable]) -> None:
    found = named(tables, "forecasters")
    good, noise = (row(found, forecaster=f"{who}#1", prompt="limits") for who in ("good", "noise"))
    assert good["auc"] == 1.0
    assert (good["jobs"], good["before"], good["after"]) == (JOBS, JOBS, 0)
    assert 0.2 < noise["auc"] < 0.8
    assert noise["auc_low"] < noise["auc"] < noise["auc_high"]
    assert row(found, forecaster="broken#1", prompt="limits")["jobs"] == JOBS - 1
    mean = row(found, forecaster="mean of all", prompt="limits")
    assert mean["jobs"] == JOBS - 1  # where all three have one
    assert found.excluded == {"excluded": 1}
    assert {r["agent"] for r in found.rows} == {"base"}  # the set is about this agent alone


def test_a_figure_of_the_report_is_that_of_the_rows() -> None:
    world = made()
    found = named(report(world, top_shares=[0.5]), "forecasters")
    mine = [r for r in world.rows["forecasts"] if (r["forecaster"], r["prompt"]) == ("noise#1", "generic")]
    labels = np.array([accepted(int(r["task_id"][1:])) for r in mine])
    expected = auc(labels, np.array([r["p_hat"] for r in mine]))
    assert row(found, forecaster="noise#1", prompt="generic")["auc"] == expected


def test_prompts_against_what_they_change(tables: list[ReportTable]) -> None:
    found = named(tables, "prompt_ablations")
    gain = row(found, forecaster="good#1", prompt="limits")
    assert gain["against"] == "generic"
    assert gain["difference"] == pytest.approx(gain["auc"] - gain["auc_against"])
    assert gain["difference_low"] > 0
    assert row(found, forecaster="good#1", prompt="drop_1")["against"] == "limits"
    assert row(found, forecaster="mean of all", prompt="limits")["difference"] > 0
    assert (compared_with("only_3+reason@tools"), compared_with("generic")) == ("generic+reason@tools", None)
    assert compared_with("imported") is None


def test_the_highest_forecasts(tables: list[ReportTable]) -> None:
    found = named(tables, "top_shares")
    best = row(found, forecaster="good#1", prompt="limits")
    assert (best["jobs"], best["accepted"]) == (30, 1.0)
    assert best["band_low"] < 0.5 < best["band_high"] < 1.0


def test_labels_of_other_judges(tables: list[ReportTable]) -> None:
    found = named(tables, "judge_labels")
    own, other = row(found, label="judge a#1"), row(found, label="judge b#1")
    assert own["kappa"] == 1.0
    assert other["kappa"] == pytest.approx(0.6)
    assert row(found, label="unanimous")["jobs"] == 48
    assert row(found, label="verdict")["auc_high"] == 1.0
    assert row(found, label="produced")["auc_high"] is None  # of one class
    # pay type tells everything here: a baseline that does not see it would be near one half
    assert row(found, label="verdict")["baseline_auc"] == 1.0


def test_baselines_families_and_terms(tables: list[ReportTable]) -> None:
    found = named(tables, "baselines")
    assert row(found, baseline="metadata")["auc"] == 1.0
    assert row(found, baseline="noise")["auc"] < 0.8
    assert row(found, baseline="mean forecast, limits")["jobs"] == JOBS
    assert row(found, baseline="stacked, limits")["jobs"] == JOBS - 1
    terms = {r["term"] for r in named(tables, "annotation_regression").rows}
    assert {"constant", "context_dependence", "log10 price"} <= terms
    family = row(named(tables, "family_residual"), agent="base")
    assert (family["cells"], family["jobs"]) == (2, JOBS - 1)


def test_tools_gain_where_files_are_needed(tables: list[ReportTable]) -> None:
    found = named(tables, "tool_agent")
    files = row(found, group="client_files")
    assert (files["base"], files["tools"], files["gain"]) == (0.5, 1.0, 0.5)
    assert files["interaction"] == 0.5
    assert files["interaction_low"] > 0
    assert row(found, group="self_contained")["gain"] == 0.0
    with pytest.raises(Invalid, match="no agent 'nobody'"):
        report(made(), base_agent="nobody", tool_agent="tools")


def test_how_forecasts_were_made(tables: list[ReportTable]) -> None:
    found = row(named(tables, "forecast_protocol"), forecaster="broken#1")
    assert (found["ok"], found["excluded"], found["asked_again"]) == (JOBS - 1, 1, 1)
    assert found["cost_usd"] == pytest.approx(0.001 * JOBS)
    assert found["input_tokens"] == 100 * JOBS


def test_only_those_made_beforehand_and_only_the_first_of_two() -> None:
    world = made()
    forecast(world, 3, "noise#1", "limits", 0.99)  # of a second set, later
    forecast(world, 4, "late#1", "limits", 0.5, made_before_attempt=False)
    every = named(report(world, top_shares=[0.5]), "forecasters")
    assert every.excluded == {"excluded": 1, "forecast again": 1}
    assert row(every, forecaster="late#1")["after"] == 1
    before = named(report(world, top_shares=[0.5], only_before=True), "forecasters")
    assert before.excluded == {"after the attempt": 1, "excluded": 1, "forecast again": 1}
    assert not [r for r in before.rows if r["forecaster"] == "late#1"]


def test_a_second_forecast_changes_nothing() -> None:
    before = named(report(made(), top_shares=[0.5]), "forecasters")
    world = made()
    for n in range(JOBS):
        forecast(world, n, "good#1", "limits", float(not accepted(n)))
    after = named(report(world, top_shares=[0.5]), "forecasters")
    assert row(after, forecaster="good#1", prompt="limits")["auc"] == 1.0
    assert row(before, forecaster="good#1", prompt="limits")["auc"] == 1.0


def test_jobs_without_a_defined_deliverable_can_be_left_out() -> None:
    world = made()
    for one in world.rows["forecasts"]:
        one["deliverable_modality"] = 0 if one["task_id"] < "t020" else 1
    found = named(report(world, top_shares=[0.5], defined_share=4 / 7), "forecasters")
    assert row(found, forecaster="good#1", prompt="limits")["jobs"] == 40


def test_without_forecasts_there_is_the_work_alone() -> None:
    world = made()
    world.rows["forecasts"].clear()
    names = [one.name for one in report(world)]
    assert names == ["acceptance", "criterion_rates", "rejection_causes", "exclusions"]


def test_repeats_tell_of_chance() -> None:
    world = made()
    for n in range(30):
        for sample in (2, 3):
            world.run("base", f"t{n:03}", float(accepted(n) if sample == 2 else n % 4 == 0), sample=sample)
    found = row(named(report(world, top_shares=[0.5]), "repeat_attempts"), agent="base")
    assert (found["jobs"], found["kappa"]) == (30, 1.0)
    assert found["ceiling"] is not None
    assert 0.5 < found["oracle_auc"] < 1.0
    # the label is still the first attempt's
    assert row(named(report(world, top_shares=[0.5]), "acceptance"), agent="base", by="all")["accepted"] == 0.5
