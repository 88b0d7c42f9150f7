"""Scripted judges and forecasters of the synthetic sets: what they say is a vote or forecast, and tells good work from bad."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.benchmarks.works import make, opinions, payworthy, rli
from service.domain.forecasts import ForecastPrompt, Variant
from service.domain.judging import JudgeSpec
from service.domain.tasks import TaskManifest
from service.graders.contract import Question
from service.lifecycle.forecasts.wording import asked, template
from service.models.scripted.conversation import Request
from service.models.scripted.opinions import opinion
from service.models.scripted.scenario import Scenario
from service.models.scripted.scenario_file import load
from service.testing.judges import ScriptedJudges
from tests.unit.graders.llm_panel.asked import GRADER, document, given
from tests.unit.workstead.importers.sets import DEMO

JOBS = payworthy.read_jobs(DEMO / "payworthy/postings.toml")


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenario]:
    path = tmp_path_factory.mktemp("models") / "models.toml"
    make.make_models(path)
    return {scenario.name: scenario for scenario in load(path)}


def says(scenario: Scenario) -> Callable[[JudgeSpec, str, int, Question], str]:
    def answer(_judge: JudgeSpec, _item: str, _n: int, question: Question) -> str:
        body = {"system": question.system, "messages": [{"role": "user", "content": question.text}]}
        said = opinion(scenario, Request(model="m", streaming=False, body=body))
        assert said is not None
        return said

    return answer


@pytest.mark.parametrize("name", ["payworthy-judge", "payworthy-strict"])
async def test_a_judge_pays_for_good_work_only(scenarios: dict[str, Scenario], name: str) -> None:
    texts = {job.title: job.work for job in JOBS}
    labels: set[str] = set()
    for job in JOBS[::3]:
        for variant in ("right", "partial", "wrong", "hostile"):
            files = payworthy.delivered(job.title, variant, texts)
            shown = document(*(data.decode() or " " for data in files.values()))
            verdict = await GRADER.grade(given(ScriptedJudges(says(scenarios[name])), shown))
            good = variant == "right" and opinions.accepted(job, strict=name == "payworthy-strict")
            assert verdict.score == float(good), (job.title, variant)
            labels.add(verdict.detail["label"])
    assert labels >= {"missing_context", "unverifiable", "no_deliverable", "wrong_scope", None}


def test_a_good_work_is_told_by_its_end_alone() -> None:
    texts = {job.title: job.work for job in JOBS}
    for job in JOBS:
        assert sum(job.mark in other.work for other in JOBS) == 1
        assert job.mark not in payworthy.posting(job)["description"]
        assert not any(job.mark.encode() in d for d in payworthy.delivered(job.title, "partial", texts).values())


@pytest.mark.parametrize("reason", [False, True])
def test_a_forecaster_knows_every_posting(scenarios: dict[str, Scenario], tmp_path: Path, reason: bool) -> None:
    make.make_payworthy(tmp_path / "set")
    chances: dict[str, list[float]] = {"forecaster-sharp": [], "forecaster-blunt": []}
    for job in JOBS:
        instruction = f"# {job.title}\n\n{payworthy.posting(job)['description']}"
        task = TaskManifest(name="t", instruction=instruction)
        prompt = ForecastPrompt(variant=Variant.LIMITS, reason=reason)
        question = asked(template("forecast@1"), prompt, task, None, 7)
        for name, said in chances.items():
            answer = says(scenarios[name])(JudgeSpec(model="m"), "", 1, question.question)
            read = question.read(answer)
            assert (read.reason is not None) == reason
            said.append(read.p_hat)
    needs = [job.needs for job in JOBS]
    sharp = dict(zip(needs, chances["forecaster-sharp"], strict=True))
    assert sharp["self_contained"] > 0.7 > 0.4 > sharp["client_systems"]
    assert min(chances["forecaster-blunt"]) >= 0.7


def test_a_judge_of_pairs_prefers_work_to_talk(scenarios: dict[str, Scenario]) -> None:
    works = [("work", opinions.TALK, "first"), (opinions.TALK, "work", "second"), ("work", "work", "same")]
    for first, second, better in works:
        text = f"The first work.\n{first}\nThe second work.\n{second}\n"
        said = says(scenarios["rli-judge"])(JudgeSpec(model="m"), "", 1, Question("", text, "pairwise@1", ""))
        assert json.loads(said)["completion"] == better


@pytest.mark.parametrize("variant", ["partial", "wrong", "hostile"])
@pytest.mark.parametrize("project", rli.MARKS)
def test_a_judge_of_pairs_misses_the_part_that_the_brief_is_about(
    scenarios: dict[str, Scenario], project: str, variant: str
) -> None:
    title, _ = rli.WORKS[project]
    whole, less = (
        "\n".join(data.decode("utf-8", "replace") for data in rli.delivered(title, kind).values())
        for kind in ("right", variant)
    )
    for first, second, better in ((whole, less, "first"), (less, whole, "second"), (whole, whole, "same")):
        text = f"The first work.\n{first}\nThe second work.\n{second}\n"
        said = says(scenarios["rli-judge"])(JudgeSpec(model="m"), "", 1, Question("", text, "pairwise@1", ""))
        assert json.loads(said)["completion"] == json.loads(said)["quality"] == better
