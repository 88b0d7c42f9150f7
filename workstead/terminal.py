"""Untrusted text on a terminal: no escape sequence, no markup, no direction override survives."""

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC with their end
    r"|\x1b[ -/]*[0-~]"
)
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str, limit: int = 65_536) -> str:
    """Return ``text`` with terminal sequences removed and C0/C1, bidirectional and surrogate characters dropped.

    Newlines and tabs stay; a carriage return becomes a newline, so that no line can overwrite another. For rich:
    print the result with ``markup=False`` (or in a ``Text``), never as markup.
    """
    cut = text[:limit]
    cut = _ESCAPES.sub("", cut).replace("\r\n", "\n").replace("\r", "\n")
    return _INVISIBLE.sub("", cut)


def one_line(text: str, limit: int = 100) -> str:
    """Return the last non-empty line of ``text``, safe, at most ``limit`` characters."""
    lines = [line for line in safe(text[-4 * limit - 4096 :]).replace("\t", " ").split("\n") if line.strip()]
    line = lines[-1].strip() if lines else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"
