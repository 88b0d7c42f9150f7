"""What both generations of Gemini's computer tool have in common."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from service.desktop.vocabularies.adapter import GRID, Adapter, Payload, Reader, Writer, bounded
from service.desktop.vocabularies.contract import Reading
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.place import Place
from service.domain.desktop import ActionType, CoordinateSpace, DesktopAction, Point, SafetyCheck, Size

BACK, FORWARD = ["alt", "Left"], ["alt", "Right"]
MAX_KEY_TEXT = 400
_MAX_INTENT = 2000
_MAX_URL = 4096
_CONFIRM = "require_confirmation"


class Gemini(Adapter):
    """Payload: ``{"name": …, "args": {…}}``, coordinates in thousandths of the picture's sides."""

    readers: ClassVar[Mapping[str, Reader]]
    writers: ClassVar[Mapping[ActionType, Writer]]

    def space(self, image: Size) -> CoordinateSpace:
        del image
        return GRID

    def read(self, payload: Payload, space: CoordinateSpace, screen: Size) -> Reading:
        call = Fields(payload, "computer")
        word = call.text("name", most=MAX_KEY_TEXT)
        if word not in self.readers:
            raise self.unknown(word, self.readers)
        fields = Fields(call.inner("args").values if call.has("args") else {}, word)
        actions = bounded(self.readers[word](fields, Place(space, screen)))
        if fields.has("intent"):
            intent = fields.text("intent")[:_MAX_INTENT]
            actions = [action.model_copy(update={"intent": intent}) for action in actions]
        return Reading(self.marked(actions, payload), safety(fields))

    def say(self, action: DesktopAction, place: Place) -> Payload | None:
        writer = self.writers.get(action.type)
        said = writer(action, place) if writer is not None else None
        if said is None or not action.intent:
            return said
        return {**said, "args": {**said["args"], "intent": action.intent}}


def safety(fields: Fields) -> list[SafetyCheck]:
    """Return what the provider's safety system wants a person to confirm."""
    if not fields.has("safety_decision"):
        return []
    decision = fields.inner("safety_decision")
    word = decision.text("decision", "", 200).lower()
    if word != _CONFIRM:
        return []
    return [SafetyCheck(id="safety_decision", code=word, message=decision.text("explanation", "")[:4000])]


def call(name: str, **args: object) -> Payload:
    return {"name": name, "args": args}


def said_at(action: DesktopAction, place: Place, name: str, **args: object) -> Payload | None:
    if action.x is None or action.y is None:
        return None
    x, y = place.words(Point(x=action.x, y=action.y))
    return call(name, x=x, y=y, **args)


def drag(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    """Read both spellings of where it goes from and to."""
    start = ("start_x", "start_y") if fields.has("start_x") or fields.has("start_y") else ("x", "y")
    end = ("end_x", "end_y") if fields.has("end_x") or fields.has("end_y") else ("destination_x", "destination_y")
    return [act(ActionType.DRAG, path=[place.pair(fields, *start), place.pair(fields, *end)])]


def navigate(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    del place
    return [act(ActionType.NAVIGATE, text=fields.text("url", most=_MAX_URL))]


def pressing(*names: str) -> Reader:
    return lambda _, __: [act(ActionType.KEY, keys=list(names))]


def screenshot(*_: object) -> Sequence[DesktopAction]:
    return [act(ActionType.SCREENSHOT)]
