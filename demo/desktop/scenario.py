"""A scripted model's scenario from steps on the screen, in every vocabulary that can say them all.

``python -m demo.desktop.scenario NAME`` prints that of the demo as TOML.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from demo.desktop.scripts import PRICE_UPDATE, WAIT, Step
from service.desktop.vocabularies.registry import names, vocabulary
from service.domain.desktop import HEIGHT, WIDTH, DesktopAction, Size
from service.domain.errors import Invalid
from service.models.scripted.scenario import Action, Computer, Pixel, Scenario

SCREEN = Size(width=WIDTH, height=HEIGHT)


def scenario(name: str, steps: Sequence[Step], **fields: Any) -> Scenario:
    """Return the model's script. Raises ValueError where no vocabulary can say a step."""
    return Scenario(name=name, steps=[Action(computer=_computer(step)) for step in steps], **fields)


def _computer(step: Step) -> Computer:
    sees = [Pixel(x=x, y=y, rgb=(red, green, blue)) for x, y, red, green, blue in step.sees]
    waiting = _payloads([WAIT]) if sees else {}
    return Computer(payloads=_payloads(step.actions), sees=sees, meanwhile=waiting, again=step.again)


def _payloads(actions: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    meant = [DesktopAction.model_validate(action) for action in actions]
    told = [name for name in names() if not name.startswith("osworld.")]
    return {name: said for name in told if (said := _said(name, meant)) is not None}


def _said(name: str, actions: Sequence[DesktopAction]) -> list[dict[str, Any]] | None:
    words = vocabulary(name)
    try:
        return [dict(words.write(action, words.space(SCREEN), SCREEN)) for action in actions]
    except Invalid:
        return None


def toml(made: Scenario) -> str:
    """Return it as a file of scenarios has it."""
    steps = [step.model_dump(mode="json", exclude_none=True) for step in made.steps if isinstance(step, Action)]
    return f"[[scenario]]\nname = {_toml(made.name)}\nfinal = {_toml(made.final)}\nsteps = {_toml(steps)}\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in pairs.items() if v is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


if __name__ == "__main__":
    sys.stdout.write(toml(scenario(sys.argv[1], PRICE_UPDATE, final="The workbook is in the output folder.")))
