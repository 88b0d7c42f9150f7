"""The loop: ask the model, do what it asks, tell it, until it asks for nothing more or a limit is reached."""

import asyncio
from collections.abc import Sequence
from typing import Any

from service.domain.agents import AgentSettings
from service.domain.events import EventType
from service.models.messages import Answer, Ask, ModelRefused, ResultsTurn, ToolCall, ToolResult, UserTurn
from service.scaffolds import efforts
from service.scaffolds.contract import ModelChoice, Translated
from service.scaffolds.efforts import Effort
from service.scaffolds.loops import LoopEnd, LoopJob
from service.scaffolds.prompts import prompt_for
from service.scaffolds.tool_loop.calls import Calls, NoPython
from service.scaffolds.tool_loop.conversation import Conversation

DEFAULT_TURNS = 200
MAX_PARALLEL = 8
MAX_CALLS = 64
"""Most calls of one answer that are done."""
MAX_EMPTY = 3
"""Empty answers in a row until it ends."""
GO_ON = "Your last answer was empty. If the work is done, say so in a sentence; otherwise go on."
CUT = "Your last answer was cut off at its length limit. Go on, in smaller steps."
EFFORTS = ("minimal", "none", "low", "medium", "high", "xhigh", "max")
"""What the dialects' SDKs can say; the model's own list decides."""


def effort(settings: AgentSettings, model: ModelChoice) -> Effort:
    """Raises Invalid ``unsupported_effort``."""
    return efforts.resolve(settings, model, EFFORTS)


class Work:
    """One loop at work. One with further tools brings its own ``calls`` and changes what is asked."""

    def __init__(self, job: LoopJob, calls: Calls, talk: Conversation, system: str) -> None:
        model = job.context.model
        assert model is not None  # checked by plan
        self.job = job
        self.talk = talk
        self._calls = calls
        self._system = system
        self._effort = effort(job.context.settings, model).used
        self._empty = 0
        talk.window = model.context_window or talk.window

    async def first_turn(self) -> UserTurn:
        return UserTurn(text=prompt_for(self.job.task, self.job.context).text)

    async def asked(self) -> Ask:
        """Return the next request. Only called for one whose answer is not recorded."""
        settings = self.job.context.settings
        return Ask(
            self._system,
            list(self.talk.turns),
            [tool.spec for tool in self._calls.offered.values()],
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
            effort=self._effort,
        )

    async def to_the_end(self) -> LoopEnd:
        most = self.job.context.settings.max_turns or DEFAULT_TURNS
        try:
            await self._calls.prepare()
            self.talk.add(await self.first_turn())
            for turn in range(1, most + 1):
                if (end := await self._turn(turn)) is not None:
                    return end
        except ModelRefused as error:
            status = "limit" if error.type in ("budget_exhausted", "context_too_long") else "error"
            return LoopEnd(status, error.type, detail={"message": error.detail[:2000]})
        except NoPython:
            return LoopEnd("error", "environment_without_python")
        return LoopEnd("limit", "max_turns", detail={"max_turns": most})

    async def _turn(self, turn: int) -> LoopEnd | None:
        answer = await self._ask(turn)
        self.talk.add(answer)
        if answer.calls:
            self._empty = 0
            self.talk.add(ResultsTurn(results=await self._perform(turn, answer.calls)))
            return None
        return self._ended(answer)

    def _ended(self, answer: Answer) -> LoopEnd | None:
        if answer.stop == "refusal":
            return LoopEnd("error", "refused", answer.text, {"stop": answer.stop_detail})
        if answer.stop == "end" and answer.text.strip():
            return LoopEnd("success", "done", answer.text)
        self._empty += 1
        if self._empty >= MAX_EMPTY:
            return LoopEnd("error", "empty_answers", answer.text, {"stop": answer.stop_detail})
        self.talk.add(UserTurn(text=CUT if answer.stop == "length" else GO_ON))
        return None

    async def _ask(self, turn: int) -> Answer:
        if self.talk.compact():
            await self._say_compacted(turn, "full")
        try:
            return await self._request(turn)
        except ModelRefused as error:
            # The estimate was too low: once more with half of it.
            if error.type != "context_too_long" or not self.talk.compact(share=0.2):
                raise
        await self._say_compacted(turn, "refused")
        return await self._request(turn)

    async def _request(self, turn: int) -> Answer:
        async def act() -> dict[str, Any]:
            return (await self.job.model.ask(await self.asked())).model_dump(mode="json")

        return Answer.model_validate(await self.job.journal.step("model", f"turn-{turn}", act, _told))

    async def _say_compacted(self, turn: int, why: str) -> None:
        tokens = int(self.talk.tokens())

        async def act() -> dict[str, Any]:
            return {"turn": turn, "why": why, "estimated_tokens": tokens}

        def tell(value: dict[str, Any]) -> Sequence[Translated]:
            text = f"old tool results were dropped from the conversation ({value['estimated_tokens']} tokens are left)"
            return [Translated(EventType.AGENT_WARNING, {"text": text, **value})]

        await self.job.journal.step("compact", f"turn-{turn}-{why}", act, tell)

    async def _perform(self, turn: int, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Do the calls of one answer: those that only read together, the others in their order."""
        done: list[ToolResult] = []
        together: list[tuple[ToolCall, str]] = []
        for n, call in enumerate(calls):
            if n >= MAX_CALLS:
                text = f"not done: at most {MAX_CALLS} calls in one answer"
                done += [*await self._gather(together), _not_done(call, text)]
                together = []
                continue
            together.append((call, f"turn-{turn}-call-{n}"))
            if self._calls.alone(call) or len(together) == MAX_PARALLEL:
                *before, last = together
                done += await self._gather(before)
                done.append(await self._calls.perform(*last))
                together = []
        return [*done, *await self._gather(together)]

    async def _gather(self, calls: Sequence[tuple[ToolCall, str]]) -> list[ToolResult]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._calls.perform(call, key)) for call, key in calls]
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several  # what ended one call ends the loop
        return [task.result() for task in tasks]


def _not_done(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(id=call.id, name=call.name, text=text, is_error=True)


def _told(value: dict[str, Any]) -> Sequence[Translated]:
    told: list[Translated] = []
    if value["thinking"].strip():
        told.append(Translated(EventType.AGENT_THINKING, {"text": value["thinking"]}))
    if value["text"].strip():
        told.append(Translated(EventType.AGENT_MESSAGE, {"text": value["text"], "stop": value["stop"]}))
    for call in value["calls"]:
        arguments = call["arguments"] if call["arguments"] is not None else {"raw": call["raw"]}
        told.append(Translated(EventType.TOOL_CALL, {"id": call["id"], "name": call["name"], "arguments": arguments}))
    return told
