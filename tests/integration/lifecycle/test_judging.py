"""Judges of a grading: each vote once, waits instead of scores, whose fault a call without an answer is."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.run_states import Outcome, Phase
from service.domain.verdicts import VerdictState
from service.graders import registry
from service.lifecycle.grade import grade
from service.lifecycle.grading_context import Patience
from service.store import blob_refs, grading_jobs, gradings, runs
from service.store.database import Database
from service.store.grading_jobs import Wanted
from tests.fixtures.judge_server import Answer
from tests.integration.lifecycle.court import JUDGE, METHOD, Court, judging_of, question_of, read, says
from tests.integration.lifecycle.stage import Stage, until


@pytest.fixture
async def court(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Court]:
    monkeypatch.setitem(registry.METHODS, METHOD, "tests.integration.lifecycle.court:Polls")
    registry.grader_for.cache_clear()
    async with Court.open(stage, tmp_path) as made:
        yield made
    registry.grader_for.cache_clear()


def asked(court: Court) -> Counter[str]:
    """Return how often each question was answered."""
    return Counter(text_of(body) for body in court.server.bodies)


def text_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"][0]["text"])


def prose_for(*words: str) -> Answer:
    """Return a judge that answers in prose where the question has one of the words."""
    return lambda body: "prose" if any(word in text_of(body) for word in words) else says(body)


async def test_votes_are_recorded_with_what_was_asked(court: Court) -> None:
    row = await court.enqueue()
    await grade(court.context(), row.id)
    ended = await court.row(row.id)
    assert (ended.state, ended.score, ended.max_score, ended.tries) == (VerdictState.GRADED, 3.0, 3.0, 1)
    found = await court.votes(row.id)
    assert [(v.item, v.n, v.state, v.asks) for v in found] == [(f"r{n}", 1, "valid", 1) for n in range(3)]
    assert {v.content["yes"] for v in found} == {f"item {n} try 0" for n in range(3)}
    assert found[0].model == "judge-1"
    assert found[0].usage is not None
    assert found[0].usage["output_tokens"] == 50
    assert found[0].rendered_sha256 is not None
    rendered = json.loads(court.stage.blobs.read_bytes(found[0].rendered_sha256))
    assert rendered == {"system": "Say yes.", "text": "item 0 try 0", "images": []}
    assert found[0].template_sha256 is not None
    assert court.stage.blobs.read_bytes(found[0].template_sha256) == b"the template"
    assert {body["temperature"] for body in court.server.bodies} == {0.0}


async def test_what_judges_were_asked_goes_with_the_run(court: Court) -> None:
    row = await court.enqueue()
    await grade(court.context(), row.id)
    (asked_, *_) = [vote.rendered_sha256 for vote in await court.votes(row.id)]
    assert asked_ is not None
    async with court.stage.db.transaction() as tx:
        assert await blob_refs.project_has(tx, row.project_id, [asked_])
        await runs.delete(tx, row.run_id)
        assert not await blob_refs.project_has(tx, row.project_id, [asked_])


@pytest.mark.fault(75)
async def test_an_answer_that_does_not_fit_is_asked_for_again_and_then_is_no_vote(court: Court) -> None:
    court.server.answer = prose_for("item 0", "try 0")
    row = await court.enqueue()
    await grade(court.context(), row.id)
    found = await court.votes(row.id)
    assert [(v.state, v.cause, v.asks) for v in found] == [
        ("invalid", "schema", 2),
        ("valid", None, 2),
        ("valid", None, 2),
    ]
    assert found[0].content == {}
    assert found[1].usage is not None
    assert found[1].usage["output_tokens"] == 100, "of both answers"
    assert (await court.row(row.id)).score == 2.0


@pytest.mark.fault(125)
async def test_two_graders_at_once_give_each_vote_once(court: Court) -> None:
    """Each with its own connections, clients and memory, as two processes have; then without the lock between them."""
    court.server.latency_s = 0.05
    row = await court.enqueue(items=5)
    other_db = Database(court.stage.db.url)
    others = judging_of(court.stage, court.way)
    await asyncio.gather(grade(court.context(), row.id), grade(court.context(db=other_db, judging=others), row.id))
    assert asked(court) == {f"item {n} try 0": 1 for n in range(5)}, "a lock keeps the second one out"
    bare = await court.enqueue(round=2)
    both = [judging.of(bare) for judging in (court.judging, others)]
    said = await asyncio.gather(*(of.vote(JUDGE, "r", 1, question_of(n), read) for n, of in enumerate(both)))
    assert said[0] == said[1], "the first one written stands for both"
    assert len(await court.votes(bare.id)) == 1
    await others.close()
    await other_db.close()


async def test_a_start_after_a_crash_asks_only_for_what_is_missing(court: Court) -> None:
    row = await court.enqueue(items=4)
    async with court.stage.db.transaction() as tx:
        assert await gradings.claim_start(tx, row.id) is not None
    await court.judging.of(row).vote(JUDGE, "r1", 1, question_of(1), read)
    await grade(court.context(), row.id)
    ended = await court.row(row.id)
    assert (ended.score, ended.tries) == (4.0, 2)
    assert asked(court) == {f"item {n} try 0": 1 for n in range(4)}


@pytest.mark.fault(124)
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_a_storm_makes_the_grading_wait_and_nobody_is_asked_meanwhile(court: Court, status: int) -> None:
    court.server.fail = status
    row = await court.enqueue()
    await grade(court.context(patience=Patience()), row.id)
    waits = await court.row(row.id)
    assert (waits.state, waits.cause, waits.score, waits.tries, waits.put_offs) == (
        VerdictState.PENDING, "judge_unavailable", None, 0, 1,
    )  # fmt: skip
    assert waits.not_before is not None
    before = court.server.statuses[status]
    async with court.stage.db.reading() as tx:
        assert await grading_jobs.open_ids(tx) == []
    await grade(court.context(), row.id)  # a job that was delivered twice
    assert court.server.statuses[status] == before
    court.server.fail = None
    await court.make_due(row.id)
    await grade(court.context(), row.id)
    assert (await court.row(row.id)).score == 3.0


async def test_patience_ends_in_the_dead_letter_and_a_replay_brings_it_back(court: Court) -> None:
    court.server.answer = prose_for("item 0")
    row = await court.enqueue()
    court.server.fail = 503
    await grade(court.context(patience=Patience(in_all_s=0.0)), row.id)
    dead = await court.row(row.id)
    assert (dead.state, dead.cause, dead.score) == (VerdictState.FAILED, "judge_unavailable", None)
    court.server.fail = None
    db, project = court.stage.db, court.stage.project.id
    async with db.transaction() as tx:
        assert (await grading_jobs.replay(tx, project, Wanted(causes=["no_such"]))).count == 0
        assert (await grading_jobs.replay(tx, "prj_other", Wanted())).count == 0
        assert (await grading_jobs.replay(tx, project, Wanted(causes=["judge_unavailable"]))).count == 1
        assert (await grading_jobs.replay(tx, project, Wanted())).count == 0
    await grade(court.context(), row.id)
    ended = await court.row(row.id)
    assert (ended.state, ended.score, ended.tries) == (VerdictState.GRADED, 2.0, 1)


async def test_a_replay_asks_anew_only_for_what_was_no_vote(court: Court) -> None:
    court.server.answer = prose_for("item 0")
    row = await court.enqueue(strict=True)
    await grade(court.context(), row.id)
    assert (await court.row(row.id)).cause == "judge_error"
    run = await court.stage.row(row.run_id)
    assert (run.phase, run.outcome) == (Phase.DONE, Outcome.UNGRADED)
    court.server.answer = says
    async with court.stage.db.transaction() as tx:
        assert (await grading_jobs.replay(tx, court.stage.project.id, Wanted(run_ids=[row.run_id]))).count == 1
    run = await court.stage.row(row.run_id)
    assert (run.phase, run.outcome) == (Phase.GRADING, None)
    await grade(court.context(), row.id)
    assert asked(court) == {"item 0 try 0": 1 + 1, "item 0 try 1": 1, "item 1 try 0": 1, "item 2 try 0": 1}
    run = await court.stage.row(row.run_id)
    assert (run.phase, run.outcome, run.score) == (Phase.DONE, Outcome.GRADED, 3.0)
    said = [e.payload["state"] for e in await court.stage.events(row.run_id, "verdict")]
    assert said == ["failed", "graded"]


@pytest.mark.parametrize(
    ("judge", "cause"),
    [({"model": "no/such"}, "judge_misconfigured"), ({"model": "test/judge", "effort": "huge"}, "judge_misconfigured")],
)
async def test_a_judge_that_cannot_be_asked_is_a_failure_with_its_cause(
    court: Court, judge: dict[str, Any], cause: str
) -> None:
    row = await court.enqueue(judges=[judge])
    await grade(court.context(), row.id)
    ended = await court.row(row.id)
    assert (ended.state, ended.cause, ended.score) == (VerdictState.FAILED, cause, None)
    assert not court.server.bodies


async def test_cancelled_while_judges_are_asked(court: Court) -> None:
    court.server.latency_s = 30.0
    row = await court.enqueue()
    grading = asyncio.create_task(grade(court.context(), row.id))
    await until(lambda: _is_asked(court))
    async with court.stage.db.transaction() as tx:
        assert (await grading_jobs.cancel(tx, court.stage.project.id, Wanted(ids=[row.id]))).count == 1
    await asyncio.wait_for(grading, 20)
    ended = await court.row(row.id)
    assert (ended.state, ended.cause) == (VerdictState.FAILED, "cancelled")
    async with court.stage.db.transaction() as tx:
        assert (await grading_jobs.cancel(tx, court.stage.project.id, Wanted())).count == 0
        assert (await grading_jobs.replay(tx, court.stage.project.id, Wanted())).count == 0, "nobody asked for it"
        assert (await grading_jobs.replay(tx, court.stage.project.id, Wanted(ids=[row.id]))).count == 1


async def _is_asked(court: Court) -> bool:
    return court.server.most_at_once > 0
