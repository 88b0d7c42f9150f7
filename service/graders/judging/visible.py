"""Hostile text made plain: what no reader would see, or would see elsewhere, is written out.

Controls become pictures (``␛``), bidirectional marks, zero-width and unassigned characters their numbers (``⟨U+200B⟩``), every
kind of line end a line feed.
"""

import re
import unicodedata

_MOST_WRITTEN = 8
"""Characters of one run that are written out one by one."""
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_SUSPECT = re.compile(r"[^\n\t\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff]+")


def visible(text: str) -> str:
    """Return the text with nothing invisible in it but spaces, tabs and line feeds."""
    return _SUSPECT.sub(_written, _LINE_ENDS.sub("\n", text))


def visible_line(text: str) -> str:
    """Return the text as one line: what ends a line or a column is written out too."""
    return visible(text).replace("\n", "␊").replace("\t", "␉")


def _written(match: re.Match[str]) -> str:
    parts: list[str] = []
    hidden = 0
    for char in match[0]:
        if not _invisible(char):
            hidden = 0
            parts.append(char)
        elif (hidden := hidden + 1) <= _MOST_WRITTEN:
            parts.append(_number(char))
        else:
            del parts[len(parts) - (hidden > _MOST_WRITTEN + 1) :]
            parts.append(f"⟨{hidden - _MOST_WRITTEN} more invisible characters⟩")
    return "".join(parts)


def _invisible(char: str) -> bool:
    if unicodedata.category(char) in {"Cc", "Cf", "Cn", "Co", "Cs"}:
        return True
    point = ord(char)
    # Variation selectors carry whole messages on one visible letter; the first sixteen are part of ordinary emoji.
    return 0xE0100 <= point <= 0xE01EF or point in _BLANKS


_BLANKS = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0})
"""Letters and marks that show nothing."""


def _number(char: str) -> str:
    point = ord(char)
    if point < 0x20:
        return chr(0x2400 + point)
    return "␡" if point == 0x7F else f"⟨U+{point:04X}⟩"
