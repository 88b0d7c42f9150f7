"""What a vocabulary gives: the reading of a provider's payload into unified actions, and the writing of it. Pure.

A payload is a JSON object in the provider's own words, as ``service.models`` takes it out of an answer:

- ``anthropic.*``: the input of the tool call; of ``computer_toolset_20260801`` with the member's name as ``action``.
- ``openai.*``: ``{"actions": […]}`` or ``{"action": {…}}``.
- ``gemini.*``: ``{"name": …, "args": {…}}``.
- ``osworld.*`` and those of a manifest: as they say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from service.domain.desktop import CoordinateSpace, DesktopAction, SafetyCheck, Size


@dataclass(frozen=True, slots=True)
class Reading:
    """What one payload means."""

    actions: Sequence[DesktopAction]
    """Each with ``raw``, in screen pixels. Empty: nothing but a picture is wanted, or the end."""
    checks: Sequence[SafetyCheck] = ()
    ending: Literal["done", "fail"] | None = None
    """The model says that it is finished, in vocabularies that have a word for it."""


class Vocabulary(Protocol):
    name: str
    """``provider.version``."""

    def space(self, image: Size) -> CoordinateSpace:
        """Return what its coordinates count when the model was sent a picture of this size."""
        ...

    def image_size(self, screen: Size, model: str | None) -> Size:
        """Return the size in which this model is sent the screen: the largest that its provider does not shrink."""
        ...

    def read(self, payload: Mapping[str, Any], space: CoordinateSpace, screen: Size) -> Reading:
        """Raises Invalid ``unknown_action`` or ``bad_action``, whose detail the model is told as the call's error."""
        ...

    def write(self, action: DesktopAction, space: CoordinateSpace, screen: Size) -> Mapping[str, Any]:
        """Return a payload that reads as ``action`` (without ``raw``). Raises Invalid ``inexpressible``."""
        ...
