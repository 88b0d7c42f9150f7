"""Whether a reader sees text that is styled so. For HTML and SVG; what cannot be decided counts as seen."""

import re

TINY_PX = 3.0
_PER_UNIT = {"px": 1.0, "pt": 4 / 3, "em": 16.0, "rem": 16.0, "%": 0.16, "mm": 3.78, "cm": 37.8, "": 1.0}
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})\s*(px|pt|em|rem|%|mm|cm)?\s*\Z")
_HEX = re.compile(r"#([0-9a-f]{3,8})\Z")
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})(?:[\s,/]+([\d.]{1,8})%?)?\s*\)\Z")
_NAMED = {
    "white": (255, 255, 255), "snow": (255, 250, 250), "ivory": (255, 255, 240), "black": (0, 0, 0), "red": (255, 0, 0),
    "green": (0, 128, 0), "blue": (0, 0, 255), "navy": (0, 0, 128), "gray": (128, 128, 128), "grey": (128, 128, 128),
    "whitesmoke": (245, 245, 245), "ghostwhite": (248, 248, 255),
}  # fmt: skip
_NEAR = 24
"""Difference of two colours, summed over red, green and blue, that no reader sees."""
Colour = tuple[int, int, int]
WHITE: Colour = (255, 255, 255)


def declarations(style: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in style[:10_000].split(";"):
        name, colon, value = one.partition(":")
        if colon:
            found[name.strip().lower()] = value.replace("!important", "").strip().lower()
    return found


def vanishes(style: dict[str, str]) -> bool:
    """Whether everything inside is not shown at all."""
    if style.get("display") == "none" or style.get("visibility") in ("hidden", "collapse"):
        return True
    if _is_zero(style.get("opacity")) or _is_zero(style.get("fill-opacity")):
        return True
    if "rect(0" in style.get("clip", "") or style.get("clip-path", "").startswith("inset(100%"):
        return True
    far = any(_far(style.get(side, "")) for side in ("left", "top", "text-indent", "right", "margin-left"))
    return far and ("text-indent" in style or style.get("position") in ("absolute", "fixed") or "margin-left" in style)


def is_tiny(size: str | None) -> bool:
    match = _SIZE.match(size or "")
    return match is not None and float(match.group(1)) * _PER_UNIT[match.group(2) or ""] < TINY_PX


def colour(value: str | None) -> Colour | None:
    """Return a colour; null where it is unknown. Transparent text is read as white on white."""
    if value is None:
        return None
    if value in _NAMED:
        return _NAMED[value]
    if (match := _HEX.match(value)) is not None:
        digits = match.group(1)
        if len(digits) in (3, 4):
            digits = "".join(2 * d for d in digits)
        return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)) if len(digits) in (6, 8) else None
    match = _RGB.match(value)
    return None if match is None else (int(match.group(1)), int(match.group(2)), int(match.group(3)))


def is_see_through(value: str | None) -> bool:
    if value == "transparent":
        return True
    match = _RGB.match(value or "")
    return match is not None and match.group(4) is not None and _is_zero(match.group(4))


def alike(one: Colour, other: Colour) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= _NEAR


def _is_zero(value: str | None) -> bool:
    try:
        return value is not None and float(value.rstrip("%")) <= 0.02
    except ValueError:
        return False


def _far(value: str) -> bool:
    match = re.match(r"-(\d{3,6})(?:\.\d+)?(px|pt|em|rem|vw)", value)
    return match is not None and int(match.group(1)) >= 500
