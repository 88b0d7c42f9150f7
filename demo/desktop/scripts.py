"""What a scripted model does on the screen of image ``desktop``, 1280x800, in unified actions.

Each step is one answer of the model; before the next one the picture has come to rest. Where a program starts, a dialog opens
or a file is read the step waits, too: a model would see that nothing has come yet, a script does not look.
"""

from collections.abc import Sequence
from typing import Any

Step = Sequence[dict[str, Any]]

BROWSER, WRITER, CALC = (22, 780), (60, 780), (97, 780)
"""Where the panel has them."""


def click(x: int, y: int) -> dict[str, Any]:
    return {"type": "click", "x": x, "y": y}


def press(*keys: str) -> dict[str, Any]:
    return {"type": "key", "keys": list(keys)}


def write(text: str) -> dict[str, Any]:
    return {"type": "type", "text": text}


WAIT: dict[str, Any] = {"type": "wait", "seconds": 2.0}
"""The one length that every vocabulary with a wait can say."""


PRICE_UPDATE: Sequence[Step] = (
    [{"type": "screenshot"}],
    [click(*CALC)],
    [WAIT],
    [WAIT],
    [press("ctrl", "o"), WAIT],
    [write("/workspace/prices.csv"), press("Return"), WAIT],
    [press("Return"), WAIT],  # the import dialog's defaults
    [click(102, 207)],  # B2
    [write("1.75"), press("Return")],
    [press("ctrl", "shift", "s"), WAIT],
    [press("ctrl", "a"), write("/workspace/output/result")],
    [click(626, 537)],  # file type
    [click(410, 277)],  # Excel 2007-365
    [click(974, 497), WAIT],  # Save
)
"""Opens a price list (csv) in Calc, changes B2 and saves it as ``output/result.xlsx``."""

FORM: Sequence[Step] = (
    [click(*BROWSER)],
    [WAIT],
    [press("ctrl", "l"), write("/workspace/form.html"), press("Return"), WAIT],
    [write("Ada")],
    [press("Tab"), write("3")],
    [press("Tab"), press("space")],
    [press("Tab"), write("large")],
    [press("Tab"), press("Return")],
    [WAIT],
)
"""Fills ``form.html`` in Chromium and sends it; what is sent is downloaded into ``output``."""

SENTENCE = "Zażółć gęślą jaźń: 漢字 かな 한글 Ж ∑ € 🙂"
LETTER: Sequence[Step] = (
    [click(*WRITER)],
    [WAIT],
    [WAIT],
    [write(SENTENCE)],
    [press("ctrl", "s"), WAIT],
    [press("ctrl", "a"), write("/workspace/output/letter"), press("Return"), WAIT],
)
"""Writes a line in Writer and saves it as ``output/letter.odt``."""
