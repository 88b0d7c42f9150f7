"""Judges in memory for tests of methods: they follow a script, and are asked, re-asked and recorded as real ones."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.judging import MOST_ASKS, JudgeSpec, Vote, VoteState
from service.domain.models import TokenUsage
from service.graders.contract import InvalidVote, Question

Answer = Callable[[JudgeSpec, str, int, Question], str]
"""Judge, item, vote number and question → what it says. May raise GraderBusy, GraderFault."""


@dataclass
class ScriptedJudges:
    answer: Answer
    votes: dict[tuple[str, str, int], Vote] = field(default_factory=dict[tuple[str, str, int], Vote])
    questions: list[tuple[str, str, int, Question]] = field(default_factory=list[tuple[str, str, int, Question]])

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
        key = (judge.key, item, n)
        if key not in self.votes:
            self.votes[key] = self._asked(judge, item, n, ask, read, asks)
        return self.votes[key]

    def _asked(
        self,
        judge: JudgeSpec,
        item: str,
        n: int,
        ask: Callable[[int], Question],
        read: Callable[[str], dict[str, Any]],
        asks: int,
    ) -> Vote:
        cause, question = None, None
        for attempt in range(asks):
            question = ask(attempt)
            self.questions.append((judge.key, item, n, question))
            try:
                content = read(self.answer(judge, item, n, question))
            except InvalidVote as error:
                cause = str(error)
                continue
            return self._vote(judge, item, n, question, VoteState.VALID, content, None, attempt + 1)
        assert question is not None
        return self._vote(judge, item, n, question, VoteState.INVALID, {}, cause, asks)

    @staticmethod
    def _vote(
        judge: JudgeSpec,
        item: str,
        n: int,
        question: Question,
        state: VoteState,
        content: dict[str, Any],
        cause: str | None,
        asks: int,
    ) -> Vote:
        usage = TokenUsage(input_tokens=len(question.text) // 4, output_tokens=100)
        return Vote(
            judge.key, item, n, state, content, cause, asks, judge.model, question.template, usage=usage, took_s=0.05
        )


def nonce_of(question: Question) -> str:
    """Return the number that the rules on the system side give. Raises ValueError where they give none."""
    found = re.search(r"<<<end ([0-9a-f]{32})>>>", question.system)
    if found is None:
        raise ValueError("the system side does not say what a data block is")
    return found[1]


def outside(question: Question) -> str:
    """Return what an honest reader takes for the asker's words: all but the data blocks of this question's number."""
    nonce = nonce_of(question)
    kept = [question.system]
    inside = False
    for line in question.text.split("\n"):
        if inside:
            inside = line != f"<<<end {nonce}>>>"
        elif line.startswith(f"<<<data {nonce} ") and line.endswith(">>>"):
            inside = True
        else:
            kept.append(line)
    return "\n".join(kept)


def outside_for_a_careless_reader(question: Question) -> str:
    """Return what a reader takes for the asker's words who believes in any closing line, whatever its number."""
    kept: list[str] = []
    inside = False
    for line in question.text.splitlines():
        folded = unicodedata.normalize("NFKC", line).casefold().strip()
        if inside:
            inside = not re.search(r"<{2,}\s*/?\s*end", folded)
        elif re.match(r"<<<data [0-9a-f]{32} ", line):
            inside = True
        else:
            kept.append(line)
    return "\n".join([question.system, *kept])


def obeys(text: str, orders: Sequence[str]) -> bool:
    """Tell whether one of the orders stands in the text, also where it is hidden from a plain search."""
    return any(_plain(order) in reading for reading in _readings(text) for order in orders)


def _readings(text: str) -> list[str]:
    shown = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in {"Cf", "Mn"})
    tags = "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)
    decoded = [_base64(token) for token in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", text)]
    hexed = [bytes.fromhex(t).decode(errors="replace") for t in re.findall(r"\b(?:[0-9a-f]{2}){12,}\b", text)]
    return [_plain(reading) for reading in (shown, shown[::-1], tags, *decoded, *hexed)]


def _plain(text: str) -> str:
    folded = text.casefold().translate(_LOOK_ALIKE)
    return re.sub(r"[^a-z0-9]+", "", folded)


_LOOK_ALIKE = str.maketrans(
    {0x430: "a", 0x435: "e", 0x43E: "o", 0x440: "p", 0x441: "c", 0x445: "x", 0x456: "i", 0x455: "s"}
)


def _base64(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4)).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
