"""What the scripted provider does in the cases of scaffolds with a screen: it opens a terminal by mouse and types into it.

Each step is told in every vocabulary that has words for it. Places and colours are those of image ``desktop`` at 1280x800.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from service.models.scripted.scenario import Action, Computer, Payloads, Pixel, Scenario, Step
from service.models.scripted.shipped import OUTPUT, REPORT, SUMMARY
from service.scaffolds.conformance.telling import WAIT, told

_LOOK: dict[str, Any] = {"type": "screenshot"}
_TERMINAL: dict[str, Any] = {"type": "click", "x": 210, "y": 780}
_PANEL = Pixel(x=640, y=780, rgb=(43, 48, 59))
_OPEN = Pixel(x=800, y=500, rgb=(0, 0, 0))
"""Of the terminal's window."""
_UNKNOWN: Payloads = {
    "anthropic.20250124": [{"action": "fly"}],
    "anthropic.20251124": [{"action": "fly"}],
    "anthropic.computer_toolset_20260801": [{"action": "fly"}],
    "openai.computer_use_preview": [{"action": {"type": "fly"}}],
    "openai.computer": [{"actions": [{"type": "fly"}]}],
    "gemini.3_5": [{"name": "fly", "args": {}}],
    "gemini.legacy": [{"name": "fly", "args": {}}],
    "workstead.unified": [{"actions": [{"type": "fly"}]}],
}


@cache
def desktop_scenarios() -> Sequence[Scenario]:
    work: list[Step] = [
        _step([_LOOK]),
        _step([_TERMINAL], _PANEL),
        _step(_typed(f"mkdir -p {OUTPUT}; printf '{_escaped(REPORT)}' > {OUTPUT}/report.csv"), _OPEN),
        _step(_typed(f"printf '{_escaped(SUMMARY)}' > {OUTPUT}/summary.md")),
        _step([WAIT]),
    ]
    unknown: list[Step] = [Action(computer=Computer(payloads=_UNKNOWN))]
    hold: list[Step] = [_step([_TERMINAL]), *[_step([WAIT])] * 3]
    return (
        Scenario(name="conformance-desktop", steps=work),
        Scenario(name="conformance-desktop-unknown", steps=[*unknown, *work]),
        Scenario(name="conformance-desktop-hold", steps=hold, endless=True),
    )


def _step(actions: Sequence[dict[str, Any]], *sees: Pixel) -> Action:
    return Action(computer=Computer(payloads=told(actions), sees=list(sees), meanwhile=told([WAIT]) if sees else {}))


def _typed(line: str) -> Sequence[dict[str, Any]]:
    return [{"type": "type", "text": line}, {"type": "key", "keys": ["Return"]}]


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n")
