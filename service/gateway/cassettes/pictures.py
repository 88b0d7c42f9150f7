"""Pictures in requests: put as their digest, and in a conversation about a screen as a word.

No two runs show the same pixels: a clock, a caret, a window that opened a moment later. Such a conversation is matched by
all that is said in it, and by where a picture stands. Pure.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

WORD = "<picture>"
_TYPE_KEYS = ("media_type", "mimeType", "mime_type")
_FUNCTION = "computer"
"""Name of the plain function that stands for a computer tool where an API has none."""


def without_pictures(body: Mapping[str, Any], *, screen: bool) -> dict[str, Any]:
    """Return a body with every picture put as its digest, or, where they show a ``screen``, as a word. ``body`` is not
    changed."""
    return cast("dict[str, Any]", _put(body, screen))


def shows_a_screen(body: Mapping[str, Any]) -> bool:
    """Tell whether the request offers a computer tool, in any dialect."""
    return any(_is_computer(tool) for tool in _objects(body.get("tools")))


def _is_computer(tool: Mapping[str, Any]) -> bool:
    kind, function = tool.get("type"), tool.get("function")
    if "computerUse" in tool or "computer_use" in tool or (isinstance(kind, str) and kind.startswith("computer")):
        return True
    declared = [*_objects(tool.get("functionDeclarations")), *_objects(tool.get("function_declarations"))]
    return any(one.get("name") == _FUNCTION for one in [tool, *declared, *_objects([function])])


def _put(value: Any, as_word: bool) -> Any:
    if isinstance(value, list):
        return [_put(one, as_word) for one in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        data = pairs.get("data")
        put = {key: _put(one, as_word) for key, one in pairs.items() if key != "data" or not isinstance(data, str)}
        if isinstance(data, str):
            put["data"] = _word(data, as_word) if _is_picture(pairs) else _put(data, as_word)
        return put
    if isinstance(value, str) and value.startswith("data:image/"):
        head, comma, data = value.partition(",")
        return f"{head}{comma}{_word(data, as_word)}"
    return value


def _is_picture(holder: Mapping[str, Any]) -> bool:
    kinds = (holder.get(key) for key in _TYPE_KEYS)
    return any(isinstance(kind, str) and kind.startswith("image/") for kind in kinds)


def _word(data: str, as_word: bool) -> str:
    if as_word:
        return WORD
    return f"<picture {hashlib.sha256(data.encode('utf-8', 'surrogatepass')).hexdigest()}>"


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    found = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", one) for one in found if isinstance(one, Mapping)]
