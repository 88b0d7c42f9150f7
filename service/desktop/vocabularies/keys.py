"""What models and programs call keys, to the names that X has for them, and back in each family's words."""

from collections.abc import Mapping, Sequence

from service.desktop.vocabularies.fields import Fields, bad

MAX_KEYS = 16
_MAX_TEXT = 400
MODIFIERS = frozenset({"ctrl", "shift", "alt", "super"})
_ALIASES = {
    "ctrl": "control control_l control_r ctrlleft ctrlright ctrl_l ctrl_r lctrl rctrl controlleft controlright controlormeta",
    "shift": "shift_l shift_r shiftleft shiftright lshift rshift",
    "alt": "alt_l alt_r altleft altright option optionleft optionright opt lalt ralt",
    "super": "super_l super_r meta meta_l meta_r cmd command win winleft winright windows os metaleft metaright",
    "Return": "enter return newline",
    "Escape": "esc escape",
    "BackSpace": "backspace back_space bksp",
    "Tab": "tab",
    "space": "space spacebar",
    "Delete": "delete del",
    "Insert": "insert ins",
    "Home": "home",
    "End": "end",
    "Page_Up": "page_up pageup pgup prior",
    "Page_Down": "page_down pagedown pgdn pgdown next",
    "Up": "up arrowup arrow_up uparrow up_arrow",
    "Down": "down arrowdown arrow_down downarrow down_arrow",
    "Left": "left arrowleft arrow_left leftarrow left_arrow",
    "Right": "right arrowright arrow_right rightarrow right_arrow",
    "Caps_Lock": "caps_lock capslock",
    "Num_Lock": "num_lock numlock",
    "Scroll_Lock": "scroll_lock scrolllock",
    "Print": "print printscreen print_screen prtsc prtscr prntscrn sysrq",
    "Pause": "pause break",
    "Menu": "menu apps contextmenu",
    "plus": "plus",
    "minus": "minus",
    "equal": "equal equals",
    "semicolon": "semicolon",
    "comma": "comma",
    "period": "period dot",
    "slash": "slash",
    "backslash": "backslash",
    "KP_Enter": "kp_enter numpadenter",
    "KP_Add": "kp_add add numpadadd",
    "KP_Subtract": "kp_subtract subtract numpadsubtract",
    "KP_Multiply": "kp_multiply multiply numpadmultiply",
    "KP_Divide": "kp_divide divide numpaddivide",
    "KP_Decimal": "kp_decimal decimal numpaddecimal",
    "KP_Separator": "kp_separator separator",
    "XF86Back": "browserback",
    "XF86Forward": "browserforward",
    "XF86Reload": "browserrefresh",
    "XF86AudioMute": "volumemute",
    "XF86AudioLowerVolume": "volumedown",
    "XF86AudioRaiseVolume": "volumeup",
    **{f"F{n}": f"f{n}" for n in range(1, 25)},
    **{f"KP_{n}": f"kp_{n} num{n} numpad{n}" for n in range(10)},
}
NAMES: Mapping[str, str] = {
    alias: name for name, aliases in _ALIASES.items() for alias in (*aliases.split(), name.lower())
}
"""Every known word in small letters → X's name."""
Words = Mapping[str, str]
"""X's name → a family's word; what is not in it is called as X calls it."""
XDOTOOL: Words = {}
OPENAI: Words = {
    "ctrl": "CTRL",
    "shift": "SHIFT",
    "alt": "ALT",
    "super": "CMD",
    "Return": "ENTER",
    "Escape": "ESC",
    "BackSpace": "BACKSPACE",
    "Tab": "TAB",
    "space": "SPACE",
    "Delete": "DELETE",
    "Insert": "INSERT",
    "Home": "HOME",
    "End": "END",
    "Page_Up": "PAGEUP",
    "Page_Down": "PAGEDOWN",
    "Up": "ARROWUP",
    "Down": "ARROWDOWN",
    "Left": "ARROWLEFT",
    "Right": "ARROWRIGHT",
}
_SMALL = {name: word.lower().replace("arrow", "") for name, word in OPENAI.items()}
GEMINI: Words = {**_SMALL, "ctrl": "control", "super": "meta", "Escape": "escape"} | {
    f"F{n}": f"f{n}" for n in range(1, 25)
}
PYAUTOGUI: Words = (
    {
        **_SMALL,
        "super": "win",
        "Caps_Lock": "capslock",
        "Num_Lock": "numlock",
        "Scroll_Lock": "scrolllock",
        "Print": "printscreen",
        "Pause": "pause",
        "Menu": "apps",
        "KP_Add": "add",
        "KP_Subtract": "subtract",
        "KP_Multiply": "multiply",
        "KP_Divide": "divide",
        "KP_Decimal": "decimal",
        "KP_Separator": "separator",
    }
    | {f"F{n}": f"f{n}" for n in range(1, 25)}
    | {f"KP_{n}": f"num{n}" for n in range(10)}
)


def key(word: str) -> str:
    """Return X's name of one key; a word that nobody knows stays, for the desktop to judge."""
    if word == "+":
        return "plus"
    if word.isspace() and len(word) == 1:
        return {"\n": "Return", "\t": "Tab"}.get(word, "space")
    if len(word) == 1:
        return word
    return NAMES.get(word.lower(), word)


def together(words: Sequence[str]) -> list[str]:
    """Return keys that are held together. A letter beside a modifier is its key, whatever its case: CTRL and C is no shift."""
    names = [key(word) for word in words]
    if MODIFIERS.isdisjoint(names):
        return names
    return [name.lower() if len(name) == 1 and name.isascii() else name for name in names]


def combination(text: str) -> list[str]:
    """Read ``ctrl+shift+t``, ``Return``, ``ctrl++``. Raises Invalid ``bad_action``."""
    text = text if len(text) == 1 else text.strip()
    parts = [text] if len(text) == 1 else text.split("+")
    if len(text) > 1 and text.endswith("++"):
        parts = [*text[:-2].split("+"), "+"]
    parts = [part if len(part) == 1 else part.strip() for part in parts]
    if not all(parts) or len(parts) > MAX_KEYS:
        raise bad(f"{text[:40]!r} is no key or combination such as 'ctrl+s'")
    return together(parts)


def combinations(words: Sequence[str]) -> list[str]:
    """Read a list whose members are keys, or combinations themselves."""
    keys = [name for word in words for name in combination(word)]
    if not keys or len(keys) > MAX_KEYS:
        raise bad(f"a combination has 1 to {MAX_KEYS} keys")
    return together(keys)


def taken(fields: Fields, name: str) -> list[str]:
    """Read a field that is one text, or a list of them. Raises Invalid ``bad_action``."""
    if isinstance(fields.values.get(name), str):
        return combination(fields.text(name, most=_MAX_TEXT))
    return combinations(fields.texts(name, MAX_KEYS))


def said(names: Sequence[str], words: Words) -> list[str]:
    """Return the keys in a family's words."""
    return [words.get(name, name) for name in together(names)]
