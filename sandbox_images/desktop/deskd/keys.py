"""Names of keys, and characters as keysyms. Pure."""

from collections.abc import Container, Generator, Sequence

from faults import Failed

UNICODE = 0x01000000
"""A keysym of this and a code point is that character's."""
RETURN, TAB = 0xFF0D, 0xFF09
MOST_UNICODE = 0x10FFFF

_SHORT = {
    "Return": "enter newline",
    "Escape": "esc",
    "BackSpace": "backspace bksp back_space",
    "Delete": "del",
    "Insert": "ins",
    "Page_Up": "pgup prior",
    "Page_Down": "pgdn pgdown next",
    "Up": "arrowup uparrow",
    "Down": "arrowdown downarrow",
    "Left": "arrowleft leftarrow",
    "Right": "arrowright rightarrow",
    "space": "spacebar",
    "Control_L": "ctrl control ctrlleft controlleft lctrl leftctrl leftcontrol",
    "Control_R": "ctrlright controlright rctrl rightctrl rightcontrol",
    "Alt_L": "alt option altleft optionleft lalt leftalt leftoption",
    "Alt_R": "altright optionright ralt rightalt rightoption",
    "ISO_Level3_Shift": "altgr altgraph",
    "Shift_L": "shift shiftleft lshift leftshift",
    "Shift_R": "shiftright rshift rightshift",
    "Super_L": "super win windows cmd command meta os winleft metaleft superleft lwin",
    "Super_R": "winright metaright superright rwin",
    "Menu": "apps contextmenu",
    "Print": "printscreen prtsc prtscr prntscrn sysrq",
    "Pause": "break",
    "KP_Enter": "numpadenter",
    "KP_Add": "add numpadadd",
    "KP_Subtract": "subtract numpadsubtract",
    "KP_Multiply": "multiply numpadmultiply",
    "KP_Divide": "divide numpaddivide",
    "KP_Decimal": "decimal numpaddecimal",
    "equal": "equals",
    "grave": "backtick backquote",
    "apostrophe": "quote singlequote",
    "quotedbl": "doublequote",
    "asciitilde": "tilde",
    "exclam": "exclamation",
    "period": "dot",
    "minus": "dash hyphen",
    "bracketleft": "leftbracket",
    "bracketright": "rightbracket",
    "XF86AudioRaiseVolume": "volumeup",
    "XF86AudioLowerVolume": "volumedown",
    "XF86AudioMute": "volumemute",
    "XF86Back": "browserback",
    "XF86Forward": "browserforward",
    "XF86Reload": "browserrefresh",
}
_DIGITS = {f"{prefix}{digit}": f"KP_{digit}" for prefix in ("num", "numpad") for digit in range(10)}


def squeezed(name: str) -> str:
    return name.lower().replace("_", "").replace(" ", "").replace("-", "")


_ALIASES = {squeezed(word): name for name, words in _SHORT.items() for word in words.split()} | _DIGITS


def canonical(name: str) -> str:
    """Return the name that X knows the key by, or ``name`` where no alias is known."""
    return _ALIASES.get(squeezed(name), name) if len(name) > 1 else name


def of_character(character: str) -> int:
    """Raises Failed ``bad_action``: nothing that a keyboard gives."""
    point = ord(character)
    if character == "\n":
        return RETURN
    if character == "\t":
        return TAB
    if point < 0x20 or 0x7F <= point < 0xA0 or 0xD800 <= point < 0xE000:
        raise Failed("bad_action", f"U+{point:04X} cannot be typed")
    return point if point < 0x100 else UNICODE | point


def of_text(text: str) -> list[int]:
    return [of_character(character) for character in text.replace("\r\n", "\n").replace("\r", "\n")]


def is_spare(keysyms: Sequence[int]) -> bool:
    """Whether a key may be given another meaning: nothing, a multimedia key, or a character that we bound before."""
    return all(
        keysym == 0
        or 0x1008FE00 <= keysym <= 0x1008FFFF
        or 0xA0 <= keysym <= 0xFF
        or UNICODE < keysym <= UNICODE | MOST_UNICODE
        for keysym in keysyms
    )


def bursts(keysyms: Sequence[int], fixed: Container[int], room: int) -> Generator[tuple[list[int], list[int]]]:
    """Yield pieces of a text that need at most ``room`` (≥ 1) spare keys at once, each with what it needs them for."""
    piece, needed = list[int](), dict[int, None]()
    for keysym in keysyms:
        if keysym not in fixed and keysym not in needed:
            if len(needed) == room:
                yield piece, list(needed)
                piece, needed = [], {}
            needed[keysym] = None
        piece.append(keysym)
    yield piece, list(needed)
