"""What all vocabularies share: refusing what they do not know, keeping the payload, and proving what they write."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, bad
from service.desktop.vocabularies.keys import together
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.raw import kept
from service.domain.desktop import MAX_ACTIONS, CoordinateSpace, DesktopAction, Size
from service.domain.errors import Invalid

Reader = Callable[[Fields, Place], Sequence[DesktopAction]]
"""From an action's fields to what is done."""
Payload = Mapping[str, Any]
Writer = Callable[[DesktopAction, Place], Payload | None]
"""From an action to a payload; null: there is no word for it."""
GRID = CoordinateSpace(width=1000, height=1000, normalised=True)
_PLACES = {"x", "y", "path", "region"}


class Adapter(ABC):
    """A vocabulary (``contract.Vocabulary``). What it writes it reads again first, so that nothing is lost silently."""

    def __init__(self, name: str) -> None:
        self.name = name

    def space(self, image: Size) -> CoordinateSpace:
        return CoordinateSpace(width=image.width, height=image.height)

    def image_size(self, screen: Size, model: str | None) -> Size:
        del model
        return screen

    @abstractmethod
    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading: ...

    @abstractmethod
    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        """Return a payload that may mean ``action``; null: there is no word for it."""

    def write(self, action: DesktopAction, space: CoordinateSpace, screen: Size) -> Payload:
        place = Place(space, screen)
        plain = action.model_copy(
            update={"raw": None, "keys": together(action.keys), "modifiers": together(action.modifiers)}
        )
        payload = self.say(plain, place)
        if payload is None or not self._means(payload, plain, place):
            raise Invalid("inexpressible", f"{self.name} has no word for this {action.type}")
        return payload

    def _means(self, payload: Payload, action: DesktopAction, place: Place) -> bool:
        try:
            actions = self.read(payload, place.space, place.screen).actions
        except Invalid:
            return False
        return len(actions) == 1 and alike(actions[0], action, place.grain)

    def marked(self, actions: Iterable[DesktopAction], payload: Payload) -> list[DesktopAction]:
        """Return the actions with the payload that they were read from."""
        raw = kept(self.name, payload)
        return [action.model_copy(update={"raw": raw}) for action in actions]

    def unknown(self, word: str, known: Iterable[str]) -> Invalid:
        names = ", ".join(sorted(known))
        return Invalid("unknown_action", f"{word[:40]!r} is no action of {self.name}, which has: {names}")


def bounded(actions: Sequence[DesktopAction]) -> Sequence[DesktopAction]:
    """Raises Invalid ``bad_action`` for more than a batch may have."""
    if len(actions) > MAX_ACTIONS:
        raise bad(f"at most {MAX_ACTIONS} actions at once")
    return actions


def alike(one: DesktopAction, other: DesktopAction, grain: int) -> bool:
    """Tell whether two actions are the same but for why they are done, places being ``grain`` pixels apart at most."""
    left, right = (action.model_dump(exclude={"raw", "intent", *_PLACES}) for action in (one, other))
    return left == right and _near(_coordinates(one), _coordinates(other), grain)


def _coordinates(action: DesktopAction) -> list[int | None]:
    path = [value for point in action.path for value in (point.x, point.y)]
    region = action.region
    corners = [] if region is None else [region.x0, region.y0, region.x1, region.y1]
    return [action.x, action.y, len(path), *path, *corners]


def _near(left: Sequence[int | None], right: Sequence[int | None], grain: int) -> bool:
    if len(left) != len(right):
        return False
    pairs = zip(left, right, strict=True)
    return all(a == b or (a is not None and b is not None and abs(a - b) <= grain) for a, b in pairs)
