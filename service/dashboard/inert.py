"""Text of agents, made visible: what would move a cursor, hide, or turn the reading direction is shown as its name.

HTML escaping is the templates' work (autoescape); this is about characters that HTML lets through.
"""

import re
import unicodedata

MAX_CHARS = 2000
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def inert(value: object, limit: int = MAX_CHARS) -> str:
    """Return ``value`` as text in which every control, bidi and zero-width character is spelled out, cut at ``limit``."""
    text = str(value)
    shown = _HIDDEN.sub(lambda m: _named(m.group()), text[:limit])
    return shown if len(text) <= limit else f"{shown} …[{len(text) - limit} more]"


def _named(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if unicodedata.category(char) == "Cs":
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"
