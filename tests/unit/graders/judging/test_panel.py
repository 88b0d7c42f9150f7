import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from service.domain.judging import JudgeSpec
from service.graders.contract import GraderBusy, GraderFault, InvalidVote, Question
from service.graders.judging.fencing import Fence
from service.graders.judging.orders import shuffled
from service.graders.judging.panel import Asking, majority, together, votes_of
from service.graders.judging.settings import JudgingSettings
from service.graders.judging.shares import fair, head_and_tail
from service.testing.judges import ScriptedJudges
from tests.unit.graders.judged import given


def asking(judge: JudgeSpec, n: int) -> Asking:
    def question(fence: Fence) -> Question:
        return Question(fence.rules(), f"{judge.model} {n} {fence.nonce}", "t@1", "")

    def read(text: str, nonce: str) -> dict[str, Any]:
        assert text.endswith(nonce), "an answer is read against the number of its own question"
        return {"said": text.removesuffix(f" {nonce}")}

    return Asking(question, read)


async def test_every_judge_gives_every_vote_in_order() -> None:
    judges = ScriptedJudges(lambda _j, _i, _n, question: question.text)
    settings = JudgingSettings(judges=[JudgeSpec(model="b"), JudgeSpec(model="a")], votes=2)
    votes = await votes_of(given({}, [], judges), settings, "whole", asking)
    assert [(v.content["said"], v.item, v.n) for v in votes] == [
        ("b 1", "whole", 1), ("b 2", "whole", 2), ("a 1", "whole", 1), ("a 2", "whole", 2)
    ]  # fmt: skip


async def test_numbers_follow_from_what_nobody_could_know_and_differ_by_question() -> None:
    """So that a question can be had again to the byte (a replay), and no deliverable can hold its number."""

    async def numbers(secret: str) -> list[str]:
        seen: list[str] = []

        def say(_judge: JudgeSpec, _item: str, _n: int, question: Question) -> str:
            seen.append(question.text.split()[-1])
            return "no answer at all" if len(seen) == 1 else question.text

        settings = JudgingSettings(judges=[JudgeSpec(model="b"), JudgeSpec(model="a")], votes=2)
        for item in ("r1", "r2"):
            await votes_of(replace(given({}, [], ScriptedJudges(say)), secret=secret), settings, item, forgiving)
        return seen

    first = await numbers("grd_1")
    assert len(first) == len(set(first)) == 9, "each judge, item, vote and try has its own"
    assert all(re.fullmatch("[0-9a-f]{32}", number) for number in first)
    assert await numbers("grd_1") == first
    assert not {*await numbers("grd_2")} & {*first}
    assert not {*await numbers("")} & {*await numbers("")}, "without a secret by chance"


def forgiving(judge: JudgeSpec, n: int) -> Asking:
    def read(text: str, nonce: str) -> dict[str, Any]:
        if not text.endswith(nonce):
            raise InvalidVote("schema")
        return {"said": text}

    return replace(asking(judge, n), reading=read)


async def test_a_failure_waits_for_the_others_and_the_lasting_one_is_raised() -> None:
    ended: list[str] = []

    async def work(name: str, error: Exception | None, turns: int) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        ended.append(name)
        if error is not None:
            raise error
        return name

    with pytest.raises(GraderFault):
        await together(
            [work("a", GraderBusy("away"), 0), work("b", GraderFault("judge_misconfigured"), 3), work("c", None, 9)]
        )
    assert ended == ["a", "b", "c"]
    with pytest.raises(GraderBusy):
        await together([work("a", None, 0), work("b", GraderBusy("away"), 0)])
    assert await together([work("a", None, 5), work("b", None, 0)]) == ["a", "b"]


async def test_a_cancelled_grading_cancels_what_it_waits_for() -> None:
    cancelled = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(together([forever()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cancelled.is_set()


@pytest.mark.parametrize(
    ("votes", "wanted"),
    [
        ([], None),
        ([True], True),
        ([False], False),
        ([True, False], None),
        ([True, True, False], True),
        ([False] * 3, False),
    ],
)
def test_a_majority_is_more_than_half(votes: Sequence[bool], wanted: bool | None) -> None:
    assert majority(votes) is wanted


@generated(st.lists(st.integers(), unique=True), st.text(), st.integers(1, 9))
def test_orders_are_permutations_that_can_be_had_again(items: list[int], seed: str, n: int) -> None:
    order = shuffled(items, seed, n)
    assert sorted(order) == sorted(items)
    assert order == shuffled(items, seed, n)
    assert shuffled(items, seed, 1) == items
    assert shuffled(items, seed, 2) == items[::-1]


@generated(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_shares_are_fair(sizes: list[int], total: int) -> None:
    shares = fair(sizes, total)
    assert all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))
    assert sum(shares) <= total
    cut = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    assert not cut or max(shares) <= max(cut) + 0, "nobody has more than one that was cut"
    assert not cut or max(cut) - min(cut) <= 1
    assert bool(cut) or shares == sizes


@generated(st.text(max_size=200), st.integers(0, 200))
def test_heads_and_tails_are_ends_of_the_text(text: str, most: int) -> None:
    head, left_out, tail = head_and_tail(text, most)
    assert len(head) + left_out + len(tail) == len(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= max(most, 0) or not left_out
