"""The loop: ask the model, do what it asks, tell it, until it asks for nothing more or a limit is reached."""

import asyncio
from collections.abc import Sequence
from typing import Any

from service.domain.events import EventType
from service.models.messages import Answer, Ask, ModelRefused, ResultsTurn, ToolCall, ToolResult, UserTurn
from service.scaffolds.contract import Translated
from service.scaffolds.loops import LoopEnd, LoopJob
from service.scaffolds.prompts import prompt_for
from service.scaffolds.tool_agent.calls import Calls, NoPython
from service.scaffolds.tool_agent.conversation import DEFAULT_WINDOW, Conversation
from service.scaffolds.tool_agent.prompt import EFFORTS, effort, system_prompt

DEFAULT_TURNS = 200
MAX_PARALLEL = 8
MAX_CALLS = 64
"""Most calls of one answer that are done."""
MAX_EMPTY = 3
"""Empty answers in a row until it ends."""
GO_ON = "Your last answer was empty. If the work is done, say so in a sentence; otherwise go on."
CUT = "Your last answer was cut off at its length limit. Go on, in smaller steps."
__all__ = ["EFFORTS", "ToolAgentLoop"]


class ToolAgentLoop:
    """See :class:`service.scaffolds.loops.Loop`."""

    async def run(self, job: LoopJob) -> LoopEnd:
        return await _Work(job).to_the_end()


class _Work:
    def __init__(self, job: LoopJob) -> None:
        model = job.context.model
        assert model is not None  # checked by plan
        self._job = job
        self._calls = Calls(job)
        self._talk = Conversation(window=model.context_window or DEFAULT_WINDOW)
        self._system = system_prompt(job, self._calls.offered)
        self._effort = effort(job.context.settings, model).used
        self._empty = 0

    async def to_the_end(self) -> LoopEnd:
        self._talk.add(UserTurn(text=prompt_for(self._job.task, self._job.context).text))
        most = self._job.context.settings.max_turns or DEFAULT_TURNS
        try:
            await self._calls.prepare()
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
        self._talk.add(answer)
        if answer.calls:
            self._empty = 0
            self._talk.add(ResultsTurn(results=await self._perform(turn, answer.calls)))
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
        self._talk.add(UserTurn(text=CUT if answer.stop == "length" else GO_ON))
        return None

    async def _ask(self, turn: int) -> Answer:
        if self._talk.compact():
            await self._say_compacted(turn, "full")
        try:
            return await self._request(turn)
        except ModelRefused as error:
            # The estimate was too low: once more with half of it.
            if error.type != "context_too_long" or not self._talk.compact(share=0.2):
                raise
        await self._say_compacted(turn, "refused")
        return await self._request(turn)

    async def _request(self, turn: int) -> Answer:
        settings = self._job.context.settings
        ask = Ask(
            self._system,
            list(self._talk.turns),
            [tool.spec for tool in self._calls.offered.values()],
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
            effort=self._effort,
        )

        async def act() -> dict[str, Any]:
            return (await self._job.model.ask(ask)).model_dump(mode="json")

        return Answer.model_validate(await self._job.journal.step("model", f"turn-{turn}", act, _told))

    async def _say_compacted(self, turn: int, why: str) -> None:
        tokens = int(self._talk.tokens())

        async def act() -> dict[str, Any]:
            return {"turn": turn, "why": why, "estimated_tokens": tokens}

        def tell(value: dict[str, Any]) -> Sequence[Translated]:
            text = f"old tool results were dropped from the conversation ({value['estimated_tokens']} tokens are left)"
            return [Translated(EventType.AGENT_WARNING, {"text": text, **value})]

        await self._job.journal.step("compact", f"turn-{turn}-{why}", act, tell)

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
