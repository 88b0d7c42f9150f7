"""Models among the raters of a pairwise campaign: asked through the gateway, coded in the item's own order."""

import json
import re
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.domain.campaigns import CampaignSpec, RaterSpec
from service.domain.evidence import EvidenceDocument, EvidenceFile, Part
from service.domain.judging import JudgeSpec
from service.lifecycle.campaigns.making import make
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.model_ratings import KIND
from service.lifecycle.operations.perform import perform
from service.store import evidence, operations
from service.store.campaigns import assignments, campaigns, preferences, raters
from service.store.evidence import Made
from service.store.rows_campaigns import CampaignRow
from tests.integration.lifecycle.court import Court
from tests.integration.lifecycle.stage import Stage

CODE = "import pathlib; pathlib.Path('output').mkdir(exist_ok=True); pathlib.Path('output/work.txt').write_text({!r})"
GOOD, POOR = "the GOOD harbour report", "a poor harbour report"


def prefers_good(body: dict[str, Any]) -> str:
    """Prefer what reads GOOD, wherever it stands; name no agent."""
    system, text = body["system"][0]["text"], body["messages"][-1]["content"][0]["text"]
    nonce = re.search(r'"nonce": "([0-9a-f]{32})"', system)
    assert nonce is not None
    assert "agent-" not in text
    first, _, _ = text.partition("The second work.")
    better = "first" if "GOOD" in first else "second"
    said = {"nonce": nonce[1], "reasoning": "it is good", "completion": "same", "quality": better}
    check = {"check": {"reasoning": "no", "holds": False}} if '"check"' in system else {}
    return json.dumps(said | check)


def prose(body: dict[str, Any]) -> str:
    return f"I like the first of {len(body['messages'])} most."


@pytest.fixture
async def court(stage: Stage, tmp_path: Path) -> AsyncIterator[Court]:
    async with Court.open(stage, tmp_path) as made:
        made.server.answer = prefers_good
        yield made


async def delivered(court: Court, task: str, agent: str, text: str) -> str:
    """A run of the agent that delivered the text, its evidence made; its agent's id."""
    stage = court.stage
    run = await stage.submit(
        await stage.task(name=task, instruction="Write.", graders=[]), await stage.agent(agent, CODE.format(text))
    )
    await stage.work(stage.context(), run.id)
    row = await stage.row(run.id)
    file = EvidenceFile(
        path="output/work.txt", sha256=sha256(text.encode()).hexdigest(), size_bytes=len(text), kind="text",
        state="extracted", parts=(Part(kind="text", text=text),),
    )  # fmt: skip
    digest, size = stage.blobs.store_bytes(EvidenceDocument(files=(file,)).model_dump_json().encode())
    async with stage.db.transaction() as tx:
        asked = await evidence.request(tx, stage.project.id, row.deliverable_digest or "", queued=False)
        await evidence.finish(tx, asked.id, Made(digest, size, 1, 0, 0, 0.1, {}))
    return row.agent_id


async def campaign_of(court: Court, agents: list[str], raters_: int = 2) -> CampaignRow:
    spec = CampaignSpec.model_validate(
        {"name": "pairs", "form": "pairwise", "instruction": "Compare.", "pairs": {"agents": agents, "human": False}}
    )
    court.stage.blobs.store_bytes(spec.instruction.encode())
    models = [RaterSpec(name=f"m{i}", model=JudgeSpec(model="test/judge")) for i in range(raters_)]
    async with court.stage.db.transaction() as tx:
        row = await make(tx, court.stage.project.id, spec, "tok_1")
        await raters.add(tx, row, models)
        return await campaigns.open_(tx, row)


async def asked(court: Court, campaign: CampaignRow) -> dict[str, Any]:
    """Let the models rate; the operation's result."""
    stage = court.stage
    async with stage.db.transaction() as tx:
        operation = await operations.create(tx, stage.project.id, KIND, {"campaign_id": campaign.id})
    await perform(OperationContext(stage.db, stage.blobs, first_pause_s=0.01, gateway=court.way), operation.id)
    async with stage.db.reading() as tx:
        row = await operations.get(tx, stage.project.id, operation.id)
    assert row is not None
    assert row.problem is None, row.problem
    assert row.result is not None
    return dict(row.result["raters"])


async def test_two_models_rate_every_pair_in_either_order(court: Court) -> None:
    good = poor = ""
    for i in range(2):
        good = await delivered(court, f"t/{i}", "agent-g", GOOD)
        poor = await delivered(court, f"t/{i}", "agent-p", POOR)
    campaign = await campaign_of(court, [poor, good])
    assert await asked(court, campaign) == {"R1": {"rated": 2}, "R2": {"rated": 2}}
    async with court.stage.db.reading() as tx:
        found = (await preferences.page(tx, campaign.id, None, 100)).items
        given = await assignments.of_campaign(tx, campaign.id)
    assert [(p.first_agent_id, p.value, p.choices) for p in found] == [(poor, 0.0, ["second", "second"])] * 2
    assert {a.swapped for a in given} == {True, False}
    assert sum(court.server.statuses.values()) == 4
    assert await asked(court, campaign) == {"R1": {}, "R2": {}}, "nothing is asked twice"


async def test_what_is_no_answer_is_skipped_and_a_judge_that_is_away_gives_back(court: Court) -> None:
    good = await delivered(court, "t/0", "agent-g", GOOD)
    poor = await delivered(court, "t/0", "agent-p", POOR)
    campaign = await campaign_of(court, [poor, good], 1)
    court.server.fail = 503
    assert await asked(court, campaign) == {"R1": {"judge_unavailable": 1}}
    async with court.stage.db.reading() as tx:
        assert [a.state for a in await assignments.of_campaign(tx, campaign.id)] == ["released"]
    court.server.fail = None
    court.server.answer = prose
    assert await asked(court, campaign) == {"R1": {"skipped": 1}}
    async with court.stage.db.reading() as tx:
        assert [(a.state, a.reason) for a in await assignments.of_campaign(tx, campaign.id)] == [
            ("skipped", "no answer was a rating")
        ]
