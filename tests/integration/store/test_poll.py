"""Polls that come together: one statement for many, each with its own answer, nobody left waiting."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import event

from service.domain.errors import Unavailable
from service.store import poll, runs, tokens
from service.store.database import Database
from service.store.poll import Polls
from tests.integration.store.seeds import Seeds, add_run, seed


async def test_many_polls_share_statements_and_get_their_own_answers(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        mine = [(await add_run(tx, seeds)).id for _ in range(5)]
        theirs = (await add_run(tx, other)).id
        await runs.add_flags(tx, mine[0], ["x"])
        revisions = {run_id: (await runs.load(tx, run_id)).revision for run_id in mine}
        token, _ = await tokens.mint(tx, seeds.project.id, ["runs:read"])
        gone, _ = await tokens.mint(tx, seeds.project.id, ["runs:read"])
        await tokens.revoke(tx, seeds.project.id, gone.id)
    statements: list[str] = []

    def note(*given: Any) -> None:
        statements.append(given[2])

    event.listen(db._engine.sync_engine, "before_cursor_execute", note)  # pyright: ignore[reportPrivateUsage]
    polls = Polls(db)
    asked = [(token.prefix, run_id) for run_id in [*mine, theirs, "run_none"] * 60]
    asked += [(gone.prefix, mine[0]), ("wst_nobody12", mine[0])]
    answers = await asyncio.gather(*(polls.ask(*one) for one in asked))
    for (prefix, run_id), answer in zip(asked, answers, strict=True):
        if prefix != token.prefix:
            assert answer is None
        else:
            assert answer is not None
            assert (answer.token_id, answer.revision) == (token.id, revisions.get(run_id))
    assert len(statements) <= len(asked) / poll.MOST_POLLS + 2


async def test_who_leaves_does_not_stop_the_others(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        token, _ = await tokens.mint(tx, seeds.project.id, ["runs:read"])
    polls = Polls(db)
    tasks = [asyncio.create_task(polls.ask(token.prefix, run.id)) for _ in range(6)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[3].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(r, asyncio.CancelledError) for r in results] == [True, False, False, True, False, False]
    assert all(r is not None for r in results)


async def test_without_a_database_all_hear_of_it_and_later_ones_are_answered(
    db: Database, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls = Polls(db)

    def away() -> Any:
        raise Unavailable("database_unavailable", "gone")

    with monkeypatch.context() as patch:
        patch.setattr(db, "statement", away)
        results = await asyncio.gather(*(polls.ask("a", "b") for _ in range(3)), return_exceptions=True)
    assert [type(r) for r in results] == [Unavailable] * 3
    assert await polls.ask("a", "b") is None
