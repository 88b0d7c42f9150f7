"""What the scripted provider does, as data: steps of an agent, and faults of a provider."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.domain.desktop import SafetyCheck
from service.domain.models import TokenUsage
from service.domain.tasks import Strict

ScenarioName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Stop = Literal["end", "length", "refusal"]


class FileText(Strict):
    path: str
    """Absolute, in the sandbox."""
    text: str


class ToolCall(Strict):
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])
    """A string goes out as it is, also where it is no JSON."""


class Pixel(Strict):
    """A colour on the screen, in pixels of the picture that the agent sends."""

    x: int = Field(ge=0)
    y: int = Field(ge=0)
    rgb: tuple[int, int, int]
    within: int = Field(default=24, ge=0, le=255)
    """Most difference of each part of the colour."""


Payloads = dict[str, Annotated[list[dict[str, Any]], Field(min_length=1, max_length=64)]]


class Computer(Strict):
    """What is done with the computer, told in each vocabulary that an agent may ask for."""

    payloads: Payloads = Field(min_length=1)
    """Vocabulary → payloads as ``service.desktop.vocabularies`` writes them, or anything else. All are in one answer: one
    call each, but one call with all their actions where a call takes several (``openai.computer``)."""
    checks: list[SafetyCheck] = Field(default_factory=list[SafetyCheck])
    """What the provider wants confirmed (OpenAI; of Gemini the first one's message)."""
    after: Literal["ok", "error"] | None = None
    """What the request's last results must say; else it is refused."""
    sees: list[Pixel] = Field(default_factory=list[Pixel], max_length=16)
    """What the last picture must show before this is done. Until then the model does ``meanwhile``, at most 30 times."""
    meanwhile: Payloads = Field(default_factory=dict[str, Any])
    again: bool = False
    """And at every third time the step before once more: what was done too early may have been lost."""

    @model_validator(mode="after")
    def _waits(self) -> Self:
        if self.sees and not self.meanwhile:
            raise ValueError("a step that looks says what is done meanwhile")
        return self


class Action(Strict):
    """One thing that an answer asks for; exactly one field is set."""

    run: str | None = None
    """A shell command, by whichever shell tool the agent offers."""
    write: FileText | None = None
    """A file, by the agent's own file tool; by its shell tool where it has none."""
    call: ToolCall | None = None
    """A tool by its name, offered or not."""
    say: str | None = None
    computer: Computer | None = None
    """By the computer tool that the agent offers; a request that offers none of its vocabularies is refused."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(value is not None for value in (self.run, self.write, self.call, self.say, self.computer)) != 1:
            raise ValueError("an action has exactly one of run, write, call, say, computer")
        return self


class FaultKind(StrEnum):
    STATUS = "status"
    """An error answer with ``status``, ``retry_after`` and a body in the dialect's shape."""
    CUT = "cut"
    """The connection is closed in the middle of the answer."""
    RESET = "reset"
    """The connection is reset (RST) before any byte."""
    SLOW = "slow"
    """``seconds`` before each piece of the answer."""
    STALL = "stall"
    """The answer begins, then nothing more comes for ``seconds``."""
    LINGER = "linger"
    """The whole answer comes; the end of the HTTP message only after ``seconds``."""
    REDIRECT = "redirect"
    """302 to ``location``."""
    MALFORMED = "malformed"
    """JSON that is cut off, in each event of a stream too."""
    CONTENT_TYPE = "content_type"
    """A page of HTML with status 200."""
    NO_USAGE = "no_usage"
    SPLIT = "split"
    """The bytes in pieces of ``size``: inside UTF-8 characters and frames."""
    HUGE_BODY = "huge_body"
    """``size`` bytes of answer."""
    STREAM_ERROR = "stream_error"
    """A stream that begins well and then carries an error event."""
    ECHO_KEY = "echo_key"
    """The credential comes back in the text, in a header and, with an error status, in the message."""


class Fault(Strict):
    kind: FaultKind
    turn: int | None = 0
    """At which turn of the conversation; null: at every one."""
    times: int | None = Field(default=None, ge=1)
    """How often each distinct request meets it before all is well; null: always."""
    tools: bool | None = None
    """Only requests that offer tools, or only those that offer none; null: both."""
    status: int = Field(default=500, ge=200, le=599)
    retry_after: str | None = None
    wait_s: float = Field(default=0, ge=0)
    """Before the body of an error answer."""
    seconds: float = Field(default=3600, ge=0)
    size: int = Field(default=100_000_000, ge=1)
    """Bytes."""
    location: str = "/elsewhere"


class Opinion(Strict):
    """What is said to a request without tools that has all of ``seen`` in it, one after the other."""

    seen: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str], max_length=16)
    """Empty: always."""
    say: str
    """``{nonce}`` stands for the number of a judge's question."""


Step = Action | list[Action]


class Scenario(Strict):
    """How an agent's conversation goes. The turn is decided by the tool results in the request, so nothing is kept."""

    name: ScenarioName
    steps: list[Step] = Field(default_factory=list[Step], max_length=10_000)
    """One answer each, in order; a list is several calls in one answer."""
    final: str = "Done — all files are written ✓"
    """Said when the steps are over."""
    final_stop: Stop = "end"
    endless: bool = False
    """The steps begin again after the last."""
    answers: list[str] = Field(default_factory=list[str])
    """Texts for requests that offer no tools, by the number of answers before; empty: ``final``. All but the last stop
    for length."""
    opinions: list[Opinion] = Field(default_factory=list[Opinion], max_length=1_000)
    """Before ``answers``: the first that fits what the request shows."""
    thinking: str = ""
    """Reasoning before each answer."""
    usage: TokenUsage | None = None
    """Of every answer; null: a figure that differs from turn to turn."""
    faults: list[Fault] = Field(default_factory=list[Fault])
    piece_chars: int = Field(default=24, ge=1)
    """Characters of text in one event of a stream."""

    def step(self, turn: int) -> list[Action] | None:
        """Return the actions of ``turn``; None when the script is over."""
        if self.endless and self.steps:
            turn %= len(self.steps)
        if turn >= len(self.steps):
            return None
        step = self.steps[turn]
        return step if isinstance(step, list) else [step]
