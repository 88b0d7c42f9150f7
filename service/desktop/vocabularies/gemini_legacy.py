"""Gemini 2.5 Computer Use and the previews of Gemini 3: words of a browser, done on a desktop."""

from collections.abc import Mapping, Sequence

from service.desktop.vocabularies import keys
from service.desktop.vocabularies.adapter import Payload, Reader, Writer
from service.desktop.vocabularies.fields import Fields, act
from service.desktop.vocabularies.gemini_common import (
    BACK,
    FORWARD,
    Gemini,
    call,
    drag,
    navigate,
    pressing,
    said_at,
)
from service.desktop.vocabularies.place import Place
from service.desktop.vocabularies.wheel import CLICK_PIXELS, WAYS, clicks, way_of
from service.domain.desktop import ActionType, DesktopAction, Size

SEARCH_PAGE = "https://www.google.com/"
"""Where ``search`` goes."""
_GRID = 1000
_DEFAULT_MAGNITUDE = 800
_MAX_MAGNITUDE = 10_000
_WAIT_S = 5.0
_PAGES = {"up": "Page_Up", "down": "Page_Down"}


def _type_at(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    clear = [act(ActionType.KEY, keys=["ctrl", "a"]), act(ActionType.KEY, keys=["BackSpace"])]
    enter = [act(ActionType.KEY, keys=["Return"])]
    return [
        act(ActionType.CLICK, **place.pair(fields).model_dump()),
        *(clear if fields.flag("clear_before_typing", default=True) else []),
        act(ActionType.TYPE, text=fields.text("text")),
        *(enter if fields.flag("press_enter", default=True) else []),
    ]


def _scroll_at(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    right, down = fields.choice("direction", WAYS)
    magnitude = fields.number("magnitude", 1, _MAX_MAGNITUDE, _DEFAULT_MAGNITUDE)
    amount = clicks(magnitude * _side(place.screen, right != 0) / _GRID)
    return [act(ActionType.SCROLL, dx=right * amount, dy=down * amount, **place.pair(fields).model_dump())]


def _side(screen: Size, across: bool) -> int:
    return screen.width if across else screen.height


def _scroll_document(fields: Fields, place: Place) -> Sequence[DesktopAction]:
    """A page up or down by its key; sideways half a screen with the wheel, over the screen's middle."""
    way = fields.text("direction", most=40).lower()
    if way in _PAGES:
        return [act(ActionType.KEY, keys=[_PAGES[way]])]
    right, _ = fields.choice("direction", WAYS)
    screen = place.screen
    dx = right * clicks(screen.width / 2)
    return [act(ActionType.SCROLL, dx=dx, x=screen.width // 2, y=screen.height // 2)]


_READERS: Mapping[str, Reader] = {
    "open_web_browser": lambda _, __: [act(ActionType.NAVIGATE)],
    "search": lambda _, __: [act(ActionType.NAVIGATE, text=SEARCH_PAGE)],
    "navigate": navigate,
    "go_back": pressing(*BACK),
    "go_forward": pressing(*FORWARD),
    "click_at": lambda fields, place: [act(ActionType.CLICK, **place.pair(fields).model_dump())],
    "hover_at": lambda fields, place: [act(ActionType.MOVE, **place.pair(fields).model_dump())],
    "type_text_at": _type_at,
    "scroll_document": _scroll_document,
    "scroll_at": _scroll_at,
    "wait_5_seconds": lambda _, __: [act(ActionType.WAIT, seconds=_WAIT_S)],
    "key_combination": lambda fields, _: [act(ActionType.KEY, keys=keys.taken(fields, "keys"))],
    "drag_and_drop": drag,
}


def _say_scroll(action: DesktopAction, place: Place) -> Payload | None:
    way = way_of(action)
    if way is None:
        return None
    pixels = abs(action.dx or action.dy) * CLICK_PIXELS
    magnitude = max(1, round(pixels * _GRID / _side(place.screen, action.dx != 0)))
    return said_at(action, place, "scroll_at", direction=way, magnitude=magnitude)


def _say_drag(action: DesktopAction, place: Place) -> Payload | None:
    if len(action.path) != 2:
        return None
    (x, y), (to_x, to_y) = (place.words(point) for point in action.path)
    return call("drag_and_drop", x=x, y=y, destination_x=to_x, destination_y=to_y)


def _say_navigate(action: DesktopAction, place: Place) -> Payload:
    del place
    return call("navigate", url=action.text) if action.text else call("open_web_browser")


_WRITERS: Mapping[ActionType, Writer] = {
    ActionType.CLICK: lambda a, place: said_at(a, place, "click_at"),
    ActionType.MOVE: lambda a, place: said_at(a, place, "hover_at"),
    ActionType.SCROLL: _say_scroll,
    ActionType.WAIT: lambda _, __: call("wait_5_seconds"),
    ActionType.KEY: lambda a, _: call("key_combination", keys="+".join(keys.said(a.keys, keys.GEMINI))),
    ActionType.DRAG: _say_drag,
    ActionType.NAVIGATE: _say_navigate,
}


class GeminiLegacy(Gemini):
    readers = _READERS
    writers = _WRITERS
