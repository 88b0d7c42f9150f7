"""The loop on a screen: as the tool agent's, with one more tool, and with pictures of which only the newest are sent."""

from dataclasses import replace

from service.models.messages import Ask, ToolCall, ToolResult, UserTurn
from service.scaffolds.computer_use.pictures import shown
from service.scaffolds.computer_use.prompt import system_prompt
from service.scaffolds.computer_use.screen import DesktopAway, Ended, SafetyDenied, ScreenTool
from service.scaffolds.computer_use.settings import ComputerSettings
from service.scaffolds.computer_use.speaking import Speech, speech_of
from service.scaffolds.loops import SAFETY_DENIED, LoopDesktop, LoopEnd, LoopJob
from service.scaffolds.tool_loop.calls import Calls, offered
from service.scaffolds.tool_loop.conversation import Conversation
from service.scaffolds.tool_loop.work import Work


class ComputerUseLoop:
    """See :class:`service.scaffolds.loops.Loop`."""

    async def run(self, job: LoopJob) -> LoopEnd:
        model = job.context.model
        assert model is not None  # checked by plan
        assert job.desktop is not None
        assert job.confirmations is not None
        settings = ComputerSettings.of(job.context.settings)
        speech = speech_of(model, settings, job.context.vocabulary)
        calls = _Calls(job, ScreenTool(job, speech, job.desktop, job.confirmations))
        talk = Conversation(kept_images=settings.history_pictures)
        if _answers_with_pictures_only(speech):
            talk.gone = ""  # else every old picture would bring a message of its own
        system = system_prompt(job, asks_client="message_client" in calls.offered)
        try:
            return await _Work(job, calls, talk, system, job.desktop).to_the_end()
        except SafetyDenied as error:
            return LoopEnd("error", SAFETY_DENIED, detail={"checks": [c.model_dump() for c in error.checks]})
        except Ended as error:
            return LoopEnd("success", "done") if error.ending == "done" else LoopEnd("error", "gave_up")
        except DesktopAway as error:
            return LoopEnd("error", "desktop_lost", detail={"error": str(error)[:200]})


class _Calls(Calls):
    """The screen beside the tools that the agent's settings name."""

    def __init__(self, job: LoopJob, screen: ScreenTool) -> None:
        super().__init__(job, {**screen.tools, **offered(job, default=())})
        self.screen = screen

    def alone(self, call: ToolCall) -> bool:
        return self.screen.meant_by(call) or super().alone(call)

    async def perform(self, call: ToolCall, key: str) -> ToolResult:
        if self.screen.meant_by(call):
            return await self.screen.perform(call, key)
        return await super().perform(call, key)


class _Work(Work):
    def __init__(self, job: LoopJob, calls: _Calls, talk: Conversation, system: str, desktop: LoopDesktop) -> None:
        super().__init__(job, calls, talk, system)
        self._screen = calls.screen
        self._desktop = desktop

    async def first_turn(self) -> UserTurn:
        turn = await super().first_turn()
        return turn.model_copy(update={"images": await self._screen.first()})

    async def asked(self) -> Ask:
        ask = await super().asked()
        return replace(ask, turns=await shown(ask.turns, self._desktop), computer=self._screen.native())


def _answers_with_pictures_only(speech: Speech) -> bool:
    return speech.native and speech.vocabulary.name.startswith("openai.")
