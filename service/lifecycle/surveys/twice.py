"""One question, asked once more where the answer does not fit, and what came of it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

from service.domain.grants import GrantedModel
from service.domain.judging import JudgeSpec
from service.domain.models import TokenUsage
from service.domain.surveys import MOST_ASKS
from service.graders.contract import InvalidVote, Question
from service.lifecycle.judge_calls import checked
from service.models.messages import Answer
from service.models.pricing import cost_of

MOST_CAUSE = 64
EVERYWHERE = frozenset({"judge_misconfigured", "budget_exhausted"})
"""Faults that the model's next question would meet as well."""
J = TypeVar("J", bound=JudgeSpec)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Heard(Generic[T]):
    """What was read of the answers to one question."""

    said: T | None
    """Null: neither answer fitted."""
    asks: int
    cause: str | None
    """Why there is none, by the last answer."""
    reported: str | None
    """The model as its provider calls it."""
    usage: TokenUsage | None
    """Of all answers; null where one is unknown."""
    cost_usd: Decimal | None


async def ask_twice(
    ask: Callable[[J], Awaitable[Answer]], spec: J, model: GrantedModel, read: Callable[[str], T]
) -> Heard[T]:
    """Ask, and once more at twice the tokens where ``read`` raises InvalidVote. Raises GraderBusy, GraderFault."""
    usage: TokenUsage | None = TokenUsage()
    reported, cause, found = None, None, None
    asks = 0
    while found is None and asks < MOST_ASKS:
        tokens = spec.max_output_tokens * 2**asks
        asks += 1
        try:
            answer = await ask(spec.model_copy(update={"max_output_tokens": tokens}))
            usage = None if usage is None or answer.usage is None else usage.plus(answer.usage)
            reported = answer.model or reported
            found = read(checked(answer))
        except InvalidVote as error:
            cause = (str(error) or "schema")[:MOST_CAUSE]
            usage = usage if cause != "bad_answer" else None  # nobody could read what it used
    usd = None if usage is None else cost_of(model.spec, usage, {}).usd
    return Heard(found, asks, None if found is not None else cause, reported, usage, usd)


def rendered(question: Question) -> bytes:
    """Return what is kept of a question: a blob of JSON {system, text}."""
    return json.dumps({"system": question.system, "text": question.text}, ensure_ascii=False).encode(errors="replace")
