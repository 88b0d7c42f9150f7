"""What a scripted model does on the screen of image ``desktop``, 1280x800, in unified actions.

Each step is one answer of the model. As a model does, the script looks before it acts: ``sees`` are colours that the picture
has when it is time for the step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Action = dict[str, Any]
Seen = tuple[int, int, int, int, int]
"""x, y, red, green, blue."""


@dataclass(frozen=True)
class Step:
    actions: Sequence[Action]
    sees: Sequence[Seen] = ()
    again: bool = False
    """While it does not see that, it does the step before once more now and then: a program that has just opened its
    window may not take keys yet."""


def click(x: int, y: int) -> Action:
    return {"type": "click", "x": x, "y": y}


def press(*keys: str) -> Action:
    return {"type": "key", "keys": list(keys)}


def write(text: str) -> Action:
    return {"type": "type", "text": text}


WAIT: Action = {"type": "wait", "seconds": 2.0}
"""The one length that every vocabulary with a wait can say."""
LOOK: Action = {"type": "screenshot"}
BROWSER, WRITER, CALC, TERMINAL = (22, 780), (60, 780), (97, 780), (212, 780)
"""Where the panel has them."""
PANEL = [(640, 780, 43, 48, 59)]
OFFICE = [(300, 9, 139, 175, 219), (60, 60, 237, 135, 51)]
"""A LibreOffice window, and no dialog before it."""
SHEET = [*OFFICE, (60, 178, 53, 132, 228)]
"""Calc with A1 selected."""
LIST = [*OFFICE, (128, 172, 146, 149, 149)]
"""The price list: where its second column ends."""
FILE_DIALOG = [(400, 154, 134, 171, 217), (950, 497, 43, 126, 227)]
IMPORT_DIALOG = [(500, 66, 134, 171, 217), (335, 295, 75, 146, 231)]
TYPES_OPEN = [*FILE_DIALOG, (800, 461, 53, 132, 228)]
TYPES_CLOSED = [*FILE_DIALOG, (800, 461, 255, 255, 255)]
PAGE = [(300, 9, 211, 227, 253)]
"""A browser's window."""

SHELL = [(640, 560, 0, 0, 0)]
"""A terminal's window."""

PRICE_UPDATE: Sequence[Step] = (
    Step([LOOK]),
    Step([click(*CALC)], PANEL),
    Step([press("ctrl", "o")], SHEET),
    Step([write("/workspace/prices.csv"), press("Return")], FILE_DIALOG, again=True),
    Step([press("Return")], IMPORT_DIALOG),
    Step([click(102, 207)], LIST),  # B2
    Step([write("1.75"), press("Return")]),
    Step([press("ctrl", "shift", "s")]),
    Step([press("ctrl", "a"), write("/workspace/output/result")], FILE_DIALOG, again=True),
    Step([click(626, 537)]),  # file type
    Step([click(410, 277)], TYPES_OPEN),  # Excel 2007-365
    Step([click(974, 497)], TYPES_CLOSED),  # Save
    Step([WAIT], OFFICE),
)
"""Opens a price list (csv) in Calc, changes B2 and saves it as ``output/result.xlsx``."""

FORM: Sequence[Step] = (
    Step([click(*BROWSER)]),
    Step([press("ctrl", "l"), write("/workspace/form.html"), press("Return")], PAGE),
    Step([WAIT]),
    Step([write("Ada")]),
    Step([press("Tab"), write("3")]),
    Step([press("Tab"), press("space")]),
    Step([press("Tab"), write("large")]),
    Step([press("Tab"), press("Return")]),
    Step([WAIT]),
)
"""Fills ``form.html`` in Chromium and sends it; what is sent is downloaded into ``output``."""

SENTENCE = "Zażółć gęślą jaźń: 漢字 かな 한글 Ж ∑ € 🙂"
LETTER: Sequence[Step] = (
    Step([click(*WRITER)]),
    Step([WAIT], OFFICE),
    Step([write(SENTENCE)]),
    Step([press("ctrl", "s")]),
    Step([press("ctrl", "a"), write("/workspace/output/letter"), press("Return")], FILE_DIALOG, again=True),
    Step([WAIT], OFFICE),
)
"""Writes a line in Writer and saves it as ``output/letter.odt``."""
