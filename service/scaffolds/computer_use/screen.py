"""The screen as a tool: reads what the model wants, has it confirmed where its provider asks for that, does it once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from service.desktop.vocabularies.contract import Reading
from service.domain.desktop import (
    MAX_ACTIONS,
    MOST_SIDE,
    ActionType,
    Batch,
    CoordinateSpace,
    Picture,
    Point,
    SafetyCheck,
    Shot,
    Size,
)
from service.domain.errors import Invalid
from service.models.messages import ComputerTool, Image, ToolCall, ToolResult
from service.scaffolds.computer_use.batches import SETTLE, batch_of, seen, told
from service.scaffolds.computer_use.pictures import reference
from service.scaffolds.computer_use.speaking import Speech
from service.scaffolds.loops import DesktopOutcome, LoopConfirmations, LoopDesktop, LoopJob
from service.scaffolds.tool_loop import calls
from service.scaffolds.tool_loop.schema import Tool

MOST_LOST = 5
"""Batches in a row that the desktop did not answer, until the loop ends."""
_PLACE = re.compile(r"(\d{1,6}),(\d{1,6})")
_DENIED = "not done: what the provider wants confirmed was not confirmed"


class SafetyDenied(Exception):
    """A check was not confirmed: the run ends."""

    def __init__(self, checks: Sequence[SafetyCheck]) -> None:
        super().__init__()
        self.checks = list(checks)


class Ended(Exception):
    """The model says that it is finished, in a vocabulary that has a word for it."""

    def __init__(self, ending: Literal["done", "fail"]) -> None:
        super().__init__(ending)
        self.ending: Literal["done", "fail"] = ending


class DesktopAway(Exception):
    """The desktop has not answered for ``MOST_LOST`` batches."""


def _placed(text: str, space: CoordinateSpace, screen: Size) -> str:
    found = _PLACE.fullmatch(text)
    if found is None:
        return text
    x, y = (min(int(one), MOST_SIDE - 1) for one in found.groups())
    return ",".join(str(one) for one in space.from_screen(Point(x=x, y=y), screen))


class ScreenTool:
    def __init__(self, job: LoopJob, speech: Speech, desktop: LoopDesktop, confirmations: LoopConfirmations) -> None:
        self._job = job
        self._speech = speech
        self._desktop = desktop
        self._confirmations = confirmations
        self.tools: Mapping[str, Tool] = speech.tools(desktop.screen)
        self._seen: Picture | None = None
        self._lost = 0

    def native(self) -> ComputerTool | None:
        """Return the provider's own tool for the next request; null: a plain tool stands for it."""
        if not self._speech.native:
            return None
        size = self._image_size()
        browser = self._job.context.surface == "browser"
        return ComputerTool(
            self._speech.vocabulary.name, size.width, size.height, "browser" if browser else "desktop"
        )  # fmt: skip

    def meant_by(self, call: ToolCall) -> bool:
        return call.vocabulary is not None or call.name in self.tools

    async def first(self) -> list[Image]:
        """Return the picture that the work begins with; none if there is none to be had. Raises as :meth:`perform`."""
        outcome = await self._do("first", Batch(settle=SETTLE, shot=Shot(size=self._scaled())), "")
        return [] if outcome.picture is None else [reference(outcome.picture)]

    async def perform(self, call: ToolCall, key: str) -> ToolResult:
        """Do it once. What the model got wrong and what goes wrong on the desktop is a result.

        Raises SafetyDenied, Ended, DesktopAway; LauncherLost, SandboxGone, FenceLost, Unavailable, JournalFull.
        """
        try:
            reading = self._read(call)
        except Invalid as error:
            # A check is answered even where nothing is done: its provider takes no other answer.
            if call.checks and not await self._confirmed(call, key, call.checks, Reading(())):
                raise SafetyDenied(call.checks) from error
            why, shown = error.detail or error.type, self._last()
            return await self._answer(call, key, why, is_error=True, images=shown, acknowledged=call.checks)
        checks = list({check.id: check for check in (*call.checks, *reading.checks)}.values())
        if checks and not await self._confirmed(call, key, checks, reading):
            raise SafetyDenied(checks)
        if reading.ending is not None:
            await self._answer(call, key, reading.ending)
            raise Ended(reading.ending)
        batch = batch_of(reading.actions, self._scaled())
        outcome = await self._do(key, batch, call.id)
        text, is_error = told(batch, self._in_its_words(batch, outcome))
        images = [reference(picture) for picture in seen(batch, outcome)]
        return await self._answer(call, key, text, is_error=is_error, images=images, acknowledged=checks)

    def _read(self, call: ToolCall) -> Reading:
        if call.vocabulary not in (None, self._speech.vocabulary.name):
            raise Invalid("unknown_action", f"this computer is not used in words of {call.vocabulary}")
        if call.arguments is None:
            raise Invalid("bad_action", f"the arguments are no JSON object: {call.raw[:200]}")
        space = self._speech.vocabulary.space(self._image_size())
        payload = call.arguments if call.vocabulary else self._speech.payload(call.name, call.arguments)
        reading = self._speech.vocabulary.read(payload, space, self._desktop.screen)
        if len(reading.actions) > MAX_ACTIONS:
            raise Invalid("bad_action", f"at most {MAX_ACTIONS} actions in one call")
        return reading

    def _in_its_words(self, batch: Batch, outcome: DesktopOutcome) -> DesktopOutcome:
        """Give the pointer's position as the model counts: in its picture, not on the screen."""
        space = self._speech.vocabulary.space(self._image_size())
        results = [
            result.model_copy(update={"text": _placed(result.text, space, self._desktop.screen)})
            if batch.actions[result.index].type is ActionType.CURSOR_POSITION
            else result
            for result in outcome.results
        ]
        return replace(outcome, results=results)

    async def _confirmed(self, call: ToolCall, key: str, checks: Sequence[SafetyCheck], reading: Reading) -> bool:
        intent = next((action.intent for action in reading.actions if action.intent), "")
        decision = await self._confirmations.ask(key, checks, intent)
        if not decision.acknowledged:
            await self._answer(call, key, _DENIED, is_error=True)
        return decision.acknowledged

    async def _do(self, key: str, batch: Batch, call_id: str) -> DesktopOutcome:
        outcome = await self._desktop.perform(key, batch, call_id=call_id)
        self._seen = outcome.picture or self._seen
        self._lost = self._lost + 1 if outcome.state is None else 0
        if self._lost >= MOST_LOST:
            raise DesktopAway(outcome.error)
        return outcome

    async def _answer(
        self,
        call: ToolCall,
        key: str,
        text: str,
        *,
        is_error: bool = False,
        images: Sequence[Image] = (),
        acknowledged: Sequence[SafetyCheck] = (),
    ) -> ToolResult:
        async def act() -> dict[str, Any]:
            return {"text": text, "is_error": is_error}

        await self._job.journal.step("tool", key, act, lambda value: calls.told(call, value))
        return ToolResult(
            id=call.id, name=call.name, text=text, is_error=is_error, images=list(images), vocabulary=call.vocabulary,
            acknowledged=list(acknowledged),
        )  # fmt: skip

    def _last(self) -> list[Image]:
        return [] if self._seen is None else [reference(self._seen)]

    def _image_size(self) -> Size:
        """Return the size of the picture that the model aims at: the last one that it was sent."""
        if self._seen is None:
            return self._speech.image_size(self._desktop.screen)
        return Size(width=self._seen.width, height=self._seen.height)

    def _scaled(self) -> Size | None:
        wanted = self._speech.image_size(self._desktop.screen)
        return None if wanted == self._desktop.screen else wanted
