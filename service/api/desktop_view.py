"""Batches on a run's screen as clients send them and get them back: the same by REST and by MCP."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from service.api.finishing import Body
from service.api.rendering import View
from service.domain.desktop import (
    MAX_ACTIONS,
    ActionResult,
    DesktopAction,
    DesktopState,
    Picture,
    SafetyCheck,
    Settle,
    Shot,
    Size,
)
from service.domain.ids import new_id
from service.domain.trajectory_desktop import picture_path

Payload = dict[str, Any]


class DesktopRequest(Body):
    """Either ``actions``, or a ``vocabulary`` with ``payload`` or ``payloads``."""

    actions: list[DesktopAction] = Field(default_factory=list[DesktopAction], max_length=MAX_ACTIONS)
    """In our own words: coordinates are pixels of the screen. Done in order up to the first that fails; none: only a look."""
    vocabulary: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """``openai.computer``, ``anthropic.computer_toolset_20260801`` …: what the payloads are written in."""
    payload: Payload | None = None
    """A call of the provider's computer tool as its model wrote it."""
    payloads: list[Payload] = Field(default_factory=list[Payload], max_length=MAX_ACTIONS)
    """Several, done as one batch."""
    image: Size | None = None
    """The size of the picture whose pixels the payloads' coordinates count; null: the screen's own."""
    settle: Settle | None = Settle()
    """Wait until the picture rests, before the screenshot; null: do not wait."""
    screenshot: Shot | None = Shot()
    """The picture after the last action; null: none is sent back (the run's record has one in any case)."""
    inline: bool = True
    """Pictures are part of the answer, in base64; false: only their digests."""
    call_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    """The same id again does nothing again: it waits for the first call, or returns what came of it."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        given = [*([self.payload] if self.payload is not None else []), *self.payloads]
        if self.vocabulary is None and given:
            raise ValueError("payloads need the name of their vocabulary")
        if self.vocabulary is not None and (self.actions or not given):
            raise ValueError("a vocabulary takes payload or payloads, and no actions beside them")
        return self

    def written(self) -> list[Payload]:
        return [*([self.payload] if self.payload is not None else []), *self.payloads]

    def id(self) -> str:
        return self.call_id or new_id("call")


class RecordedPicture(View):
    """A picture of the run's record, found by its content."""

    sha256: str
    format: str
    """png | webp | jpeg"""
    width: int
    height: int
    size_bytes: int
    href: str
    """Relative URL of its bytes."""
    data_base64: str | None = None
    """Null where pictures were not wanted in the answer."""


class DesktopActed(View):
    """What came of a batch. An action that failed is no error of the call."""

    call_id: str
    results: list[ActionResult]
    """One for each action that was tried; the first failing one is the last. ``image`` counts ``images``."""
    state: DesktopState | None
    """How the screen is afterwards; null where it did not say."""
    screenshot: RecordedPicture | None
    images: list[RecordedPicture]
    """Of the actions ``screenshot`` and ``zoom``."""
    checks: list[SafetyCheck]
    """What the provider wants confirmed before its actions are done. They are done: whoever sends them has decided."""
    ending: str | None
    """done | fail: the payloads say that the work is over (in vocabularies that have a word for it). The run goes on."""
    error: str | None
    """``interrupted``: the worker died over the batch; what of it was done is not known, and it is not done again."""
    detail: str
    took_s: float


def recorded(picture: Picture, run_id: str, data_base64: str | None = None) -> RecordedPicture:
    return RecordedPicture(**picture.model_dump(), href=picture_path(run_id, picture.sha256), data_base64=data_base64)
