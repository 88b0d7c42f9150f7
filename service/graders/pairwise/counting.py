"""From votes on two works to a preference: pure counting. In all of it the deliverable is the first work."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.judging import Vote, VoteState
from service.domain.preferences import Choice, is_split, majority


@dataclass(frozen=True, slots=True)
class JudgeSaid:
    judge: str
    choice: Choice | None
    """Null: too few of its votes are valid."""
    completion: Choice | None
    quality: Choice | None
    votes: int
    valid: int
    tie_broken: bool
    causes: list[str] = field(default_factory=list[str])
    """Of the invalid votes."""


def needs_tie_break(votes: Sequence[Vote]) -> bool:
    """Tell whether a judge's first votes, all valid, have no majority."""
    return _whole(votes) and is_split([Choice(v.content["choice"]) for v in votes])


def judge_said(judge: str, votes: Sequence[Vote], further: Sequence[Vote]) -> JudgeSaid:
    """Reduce a judge's votes; ``further`` are the two of a tie-break, one in each order, and make one opinion.

    A judge with an invalid vote is undecided: the orders would no longer weigh alike.
    """
    every = [*votes, *further]
    if not _whole(every):
        causes = sorted({v.cause or "schema" for v in every if v.state is not VoteState.VALID})
        valid = sum(v.state is VoteState.VALID for v in every)
        return JudgeSaid(judge, None, None, None, len(every), valid, bool(further), causes)
    choice, completion, quality = (_majority(name, votes, further) for name in ("choice", "completion", "quality"))
    return JudgeSaid(judge, choice, completion, quality, len(every), len(every), bool(further))


def position(votes: Sequence[Vote]) -> dict[str, Any]:
    """Return how often the place of a work was what was chosen, over valid votes in pairs of both orders."""
    valid = {(v.judge, v.n): v.content for v in votes if v.state is VoteState.VALID}
    pairs = [(c, valid[judge, n + 1]) for (judge, n), c in valid.items() if n % 2 and (judge, n + 1) in valid]
    places = [Choice.SAME if c["choice"] == Choice.SAME else _place(c) for c in valid.values()]
    return {
        "votes": len(places),
        "chose_first_shown": places.count(Choice.FIRST),
        "chose_second_shown": places.count(Choice.SECOND),
        "pairs": len(pairs),
        "flipped": sum({a["choice"], b["choice"]} == {Choice.FIRST, Choice.SECOND} for a, b in pairs),
    }


def _place(content: dict[str, Any]) -> Choice:
    choice = Choice(content["choice"])
    return choice if content["shown"] == Choice.FIRST else choice.swapped


def _majority(name: str, votes: Sequence[Vote], further: Sequence[Vote]) -> Choice:
    opinions = [Choice(v.content[name]) for v in votes]
    if further:
        again = {Choice(v.content[name]) for v in further}
        opinions.append(again.pop() if len(again) == 1 else Choice.SAME)
    return majority(opinions)


def _whole(votes: Sequence[Vote]) -> bool:
    return bool(votes) and all(v.state is VoteState.VALID for v in votes)
