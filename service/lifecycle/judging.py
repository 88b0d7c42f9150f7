"""The judges of one grading: asks them, records what they say, and never asks twice for what is recorded.

A vote is written in a transaction of its own as soon as it is there, with what was asked as blobs of the grading; a start
after a crash finds it. Where two processes ask for the same vote, the one that was written first stands.
"""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from service.domain.grants import GrantedModel
from service.domain.judging import MOST_ASKS, JudgeSpec, Vote, VoteState
from service.domain.models import TokenUsage
from service.graders.contract import InvalidVote, Question
from service.lifecycle.judge_calls import JudgeCalls, checked
from service.lifecycle.vote_writer import VoteWriter
from service.store import votes
from service.store.database import Database, retrying
from service.store.rows import GradingRow
from service.store.votes import NewVote

MOST_CAUSE = 64
_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Judging:
    """What the judges of all gradings of a process share."""

    db: Database
    calls: JudgeCalls
    writer: VoteWriter
    database_patience_s: float = 600.0

    def of(self, row: GradingRow, replay_of: str | None = None) -> "JudgesOf":
        """Return the grading's judges; with ``replay_of``, another grading's id, what they said of that one."""
        return JudgesOf(self, row, replay_of)

    async def close(self) -> None:
        await self.writer.settle()
        await self.calls.close()


class JudgesOf:
    """See :class:`service.graders.contract.Judges`."""

    def __init__(self, shared: Judging, row: GradingRow, replay_of: str | None = None) -> None:
        self._shared, self._row, self._replay_of = shared, row, replay_of
        self._reading = asyncio.Lock()
        self._recorded: dict[_Key, Vote] | None = None
        self._models: dict[str, GrantedModel] = {}
        self._turns: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    async def vote(
        self,
        judge: JudgeSpec,
        item: str,
        n: int,
        ask: Callable[[int], Question],
        read: Callable[[str], dict[str, Any]],
        *,
        asks: int = MOST_ASKS,
    ) -> Vote:
        """See the contract. Raises Unavailable too, where store or database are away for long."""
        key = (judge.key, item, n)
        async with self._turns.setdefault(key, asyncio.Lock()):
            recorded = await self._known()
            if key not in recorded:
                model = await self._model(judge)
                made = await self._made(_Asking(judge, item, n, ask, read, asks), model)
                recorded[key] = await self._shared.writer.write(*made)
            return recorded[key]

    async def _known(self) -> dict[_Key, Vote]:
        async with self._reading:
            if self._recorded is None:
                find = partial(votes.of_grading, grading_id=self._row.id)
                found = await retrying(self._shared.db, find, self._shared.database_patience_s)
                self._recorded = {(vote.judge, vote.item, vote.n): vote for vote in found}
            return self._recorded

    async def _model(self, judge: JudgeSpec) -> GrantedModel:
        async with self._reading:
            if judge.key not in self._models:
                self._models[judge.key] = await self._shared.calls.model(self._row.project_id, judge)
            return self._models[judge.key]

    async def _made(self, asking: "_Asking", model: GrantedModel) -> tuple[NewVote, dict[str, bytes]]:
        began = time.monotonic()
        vote = Vote(asking.judge.key, asking.item, asking.n, VoteState.INVALID, asks=0, usage=TokenUsage())
        question: Question | None = None
        while vote.state is VoteState.INVALID and vote.asks < asking.asks:
            question, vote = await self._try(asking, model, vote, question)
        vote = replace(vote, took_s=round(time.monotonic() - began, 3))
        return await asyncio.to_thread(self._recording, vote, question)

    async def _try(
        self, asking: "_Asking", model: GrantedModel, vote: Vote, last: Question | None
    ) -> tuple[Question | None, Vote]:
        """Return the vote after one more question; ``last`` is the one before it."""
        row, nth = self._row, vote.asks
        vote = replace(vote, asks=nth + 1)
        asked = last

        def question() -> Question:
            nonlocal asked
            asked = asking.ask(nth)
            return asked

        try:
            calls = self._shared.calls
            answer = await calls.ask(row.project_id, model, asking.judge, question, row.id, self._replay_of)
        except InvalidVote as error:
            return asked, replace(vote, cause=_cause(error), usage=None)
        usage = None if vote.usage is None or answer.usage is None else vote.usage.plus(answer.usage)
        vote = replace(vote, usage=usage, model=answer.model or vote.model)
        try:
            content = asking.read(checked(answer))
        except InvalidVote as error:
            return asked, replace(vote, cause=_cause(error))
        return asked, replace(vote, state=VoteState.VALID, content=content, cause=None)

    def _recording(self, vote: Vote, question: Question | None) -> tuple[NewVote, dict[str, bytes]]:
        if question is None:
            return NewVote(self._row.id, self._row.project_id, vote), {}
        images = [hashlib.sha256(base64.b64decode(one.data)).hexdigest() for one in question.images]
        asked = {"system": question.system, "text": question.text, "images": images}
        named = [
            _named(question.template_text.encode()),
            _named(json.dumps(asked, ensure_ascii=False).encode(errors="replace")),
        ]
        template, rendered = (sha for sha, _ in named)
        vote = replace(vote, template=question.template, template_sha256=template, rendered_sha256=rendered)
        sizes = {sha: len(data) for sha, data in named}
        return NewVote(self._row.id, self._row.project_id, vote, sizes), dict(named)


@dataclass(frozen=True, slots=True)
class _Asking:
    judge: JudgeSpec
    item: str
    n: int
    ask: Callable[[int], Question]
    read: Callable[[str], dict[str, Any]]
    asks: int


def _cause(error: InvalidVote) -> str:
    return str(error)[:MOST_CAUSE] or "schema"


def _named(data: bytes) -> tuple[str, bytes]:
    return hashlib.sha256(data).hexdigest(), data
