"""Friday: a second judge on a sample and then on all; two raters, who have the last word on one task."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.journeys.week import office
from tests.journeys.week.beginning import AGENTS, FULL, RUNS, SAMPLES, SCORES
from tests.journeys.week.lead import Lead
from tests.journeys.week.trouble import table
from workstead.models_campaigns import RatedItem
from workstead.sync import Client

STRICT, PEOPLE = "strict@1", "people@1"
RATED = "letter"
"""Task on which people decide."""
FINE = sum(score == FULL for score in SCORES.values())
"""Agents whose works say everything."""


def second_judge(lead: Lead) -> None:
    """Its verdicts stand beside the first one's; how far both agree is said of the sample, of all, and in the report."""
    plan = lead.folder / "strict.json"
    plan.write_text(
        json.dumps({"graders": [{"method": "rubric_chain", "settings": {"judges": [{"model": "lab/strict"}]}}]})
    )
    lead.tell("plans", "put", "strict", plan)
    which = ("--filter", f"evaluation_id={lead.evaluation}", "--outcome", "graded")
    said = lead.tell("regrade", "--plan", "strict", *which, "--sample", "12", "--stratify", "agent", "--yes", "--json")
    draft, sampled, done = said.bodies
    assert (draft["state"], draft["estimate"]["runs"]) == ("draft", RUNS), draft
    assert (sampled["state"], sampled["comparison"]["n"]) == ("sampled", 12), sampled
    compared, changed = done["comparison"], FINE * SAMPLES
    assert (done["state"], compared["n"], compared["flips_down"]["n"]) == ("done", RUNS, changed), done
    assert abs(compared["agreement"] - (1 - changed / RUNS)) < 1e-9, compared
    beside = table(lead, "judge_comparison_1", "--kind", "jobbench", "--set", f'plans_beside=["{STRICT}"]')
    assert beside["n"] + sum(beside["excluded"].values()) == len(lead.runs()), beside
    (every,) = [row for row in beside["rows"] if row["agent"] == "all agents"]
    assert 0 < every["kappa"] < 1 > every["agreement"] > 0.5, every
    # Strict about one criterion of ten, of every work that meets it: four agents in six.
    assert every["criteria"] == 2 * beside["n"], every
    assert {run.verdict.plan for run in lead.runs()} == {"task@1"}, (
        "the second judge stands beside, and decides nothing"
    )


def campaign(lead: Lead) -> None:
    """A person by a link and a program by a token rate one task's works, blind; what they say becomes the verdict."""
    rated = [run for run in lead.runs(task_id=lead.task(RATED)) if run.outcome == "graded"]
    plan = lead.folder / "people.json"
    plan.write_text(json.dumps({"graders": [{"method": "human_panel"}]}))
    lead.tell("plans", "put", "people", plan)
    lead.tell("grade", *(run.id for run in rated), "--plan", "people", "--primary", "--detach")
    spec = lead.folder / "campaign.json"
    where = {"evaluation_id": [lead.evaluation], "task_id": [lead.task(RATED)], "outcome": ["graded"]}
    spec.write_text(
        json.dumps(
            {"name": "letters", "form": "human_panel", "second_pass": False, "selection": {"where": where},
             "instruction": "Accept what the customer would be content with."}
        )
    )  # fmt: skip
    made = lead.tell("campaigns", "create", spec, "--json").body
    assert made["items"] == len(rated) == len(AGENTS) * SAMPLES, made
    lead.tell("campaigns", "open", made["id"])
    with person(lead, made["id"]) as one, program(lead, made["id"]) as two:
        seen = rate_all(lead, one) + rate_all(lead, two)
    assert len(seen) == 2 * len(rated)
    assert not [text for text in seen for label in AGENTS if label in text], "nobody sees whose work it is"
    shown = lead.tell("campaigns", "show", made["id"], "--json").body
    progress = shown["progress"]
    assert (shown["decided"], progress["accepted"], progress["agreement"]) == (len(rated), FINE * SAMPLES, 1.0), shown
    lead.tell("campaigns", "close", made["id"])
    for label in AGENTS:
        decided = lead.of(label, task_id=lead.task(RATED))
        assert {(run.verdict.plan, run.verdict.fraction) for run in decided} == {
            (PEOPLE, float(SCORES[label] == FULL))
        }, (label, decided)


class Rater(Protocol):
    def next(self) -> RatedItem | None: ...
    def read(self, item: RatedItem, n: int) -> str: ...
    def submit(self, item: RatedItem, rating: dict[str, Any]) -> None: ...


def rate_all(lead: Lead, rater: Rater) -> list[str]:
    """Rate what there is by what it says; return all that was seen."""
    (job,) = [job for job in office.JOBS if job.key == RATED]
    seen: list[str] = []
    while (item := rater.next()) is not None:
        (side,) = [side for side in item.sides if side["alias"] == "deliverable"]
        text = "".join(rater.read(item, file["n"]) for file in side["files"])
        whole = all(line in text for line in job.lines)
        rating = {"rating": 2} if whole else {"rating": 1, "tags": ["incomplete"], "reason": "Half of it is missing."}
        rater.submit(item, rating)
        seen.append(item.model_dump_json(exclude={"brief"}))
    return seen


class _Person:
    """Somebody in a browser, who came by a link."""

    def __init__(self, browser: httpx.Client) -> None:
        self._browser = browser

    def next(self) -> RatedItem | None:
        answer = self._browser.post("/v1/rate/next").raise_for_status()
        return None if answer.status_code == 204 else RatedItem.model_validate(answer.json())

    def read(self, item: RatedItem, n: int) -> str:
        return self._browser.get(f"/v1/rate/{item.id}/files/{n}").raise_for_status().text

    def submit(self, item: RatedItem, rating: dict[str, Any]) -> None:
        body = {"client_id": f"c-{item.id}", "rating": rating, "active_s": 1.0}
        self._browser.post(f"/v1/rate/{item.id}/submit", json=body).raise_for_status()


@contextmanager
def person(lead: Lead, campaign_id: str) -> Generator[_Person]:
    (invited,) = lead.tell("campaigns", "invite", campaign_id, "Ada", "--json").bodies
    with httpx.Client(base_url=lead.stack.url, headers={"Origin": lead.stack.url}) as browser:
        code = invited["link"].partition("#")[2]
        browser.post("/rate/session", json={"code": code}).raise_for_status()
        yield _Person(browser)


class _Program:
    """A program that rates with a token of its own."""

    def __init__(self, client: Client, campaign_id: str, folder: Path) -> None:
        self._client, self._campaign, self._folder = client, campaign_id, folder

    def next(self) -> RatedItem | None:
        return self._client.rating.next(self._campaign)

    def read(self, item: RatedItem, n: int) -> str:
        target = self._folder / f"{item.id}-{n}"
        self._client.rating.file(item.id, n, target)
        return target.read_text()

    def submit(self, item: RatedItem, rating: dict[str, Any]) -> None:
        self._client.rating.submit(item.id, rating, client_id=f"c-{item.id}")


@contextmanager
def program(lead: Lead, campaign_id: str) -> Generator[_Program]:
    token = lead.tell("token", "create", "--scope", "rate", "--note", "Cleo", "--json").body
    lead.client.campaigns.add_raters(campaign_id, [{"name": "Cleo", "token_id": token["id"]}])
    with Client(lead.stack.url, token["secret"]) as client:
        yield _Program(client, campaign_id, lead.folder)
