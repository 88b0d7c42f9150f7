"""All judges, all votes: asked at once, each answer read against the number of its own question."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from service.domain.judging import MOST_ASKS, JudgeSpec, Vote
from service.graders.contract import GraderFault, GradingInput, Judges, Question
from service.graders.judging.fencing import Fence
from service.graders.judging.orders import drawn
from service.graders.judging.settings import JudgingSettings

T = TypeVar("T")
NONCE = 32
"""Hex digits."""


@dataclass(slots=True)
class Asking:
    """One vote being asked for: every try is another question with a fence of its own."""

    question: Callable[[Fence], Question]
    reading: Callable[[str, str], dict[str, Any]]
    """The answer and the question's number → the vote's content. Raises InvalidVote."""
    secret: tuple[object, ...] = ()
    """What the numbers follow from; empty: they are drawn by chance."""
    _nonce: str = ""

    def ask(self, attempt: int) -> Question:
        # A repeated question differs by its number alone.
        fence = Fence(drawn("fence", *self.secret, attempt)[:NONCE]) if self.secret else Fence()
        self._nonce = fence.nonce
        return self.question(fence)

    def read(self, text: str) -> dict[str, Any]:
        return self.reading(text, self._nonce)


def judges_of(given: GradingInput, settings: JudgingSettings) -> Judges:
    """Return the way to the judges. Raises GraderFault ``judges_missing``, ``grader_unavailable``."""
    if not settings.judges:
        raise GraderFault("judges_missing", "neither the task nor the plan names a judge")
    if given.judges is None:
        raise GraderFault("grader_unavailable", "this grader process has no way to models")
    return given.judges


async def votes_of(
    given: GradingInput,
    settings: JudgingSettings,
    item: str,
    asking: Callable[[JudgeSpec, int], Asking],
    asks: int = MOST_ASKS,
) -> list[Vote]:
    """Return the votes of all judges on the item, by judge, then by number; invalid ones among them.

    Raises what ``Judges.vote`` raises, and GraderFault ``judges_missing``, ``grader_unavailable``.
    """
    judges = judges_of(given, settings)

    async def one(judge: JudgeSpec, n: int) -> Vote:
        vote = asking(judge, n)
        vote.secret = (given.secret, judge.key, item, n) if given.secret else ()
        return await judges.vote(judge, item, n, vote.ask, vote.read, asks=asks)

    return await together(one(judge, n) for judge in settings.judges for n in range(1, settings.votes + 1))


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all of them. One that fails lets the others end, since what they are answered is kept; then it is raised.

    A fault that a repetition does not cure is raised before one that it may.
    """
    results = await asyncio.gather(*works, return_exceptions=True)
    failures = [r for r in results if isinstance(r, BaseException)]
    for failure in sorted(failures, key=lambda f: not isinstance(f, GraderFault)):
        raise failure
    return [r for r in results if not isinstance(r, BaseException)]


def majority(votes: Sequence[bool]) -> bool | None:
    """Return what more than half of the votes say; None for none or a tie."""
    yes = sum(votes)
    if 2 * yes == len(votes):
        return None
    return 2 * yes > len(votes)
