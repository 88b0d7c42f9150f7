"""A scripted model's scenario from steps on the screen, in every vocabulary that can say them all.

``python -m demo.desktop.scenario NAME`` prints that of the demo as TOML.
"""

import sys
from collections.abc import Sequence
from typing import Any

from demo.desktop.scripts import PRICE_UPDATE, WAIT, Step
from service.models.scripted.scenario import Action, Computer, Pixel, Scenario
from service.scaffolds.conformance.telling import told
from workstead.cli.demo_model import toml


def scenario(name: str, steps: Sequence[Step], **fields: Any) -> Scenario:
    """Return the model's script. Raises ValueError where no vocabulary can say a step."""
    return Scenario(name=name, steps=[Action(computer=_computer(step)) for step in steps], **fields)


def _computer(step: Step) -> Computer:
    sees = [Pixel(x=x, y=y, rgb=(red, green, blue)) for x, y, red, green, blue in step.sees]
    waiting = told([WAIT]) if sees else {}
    return Computer(payloads=told(step.actions), sees=sees, meanwhile=waiting, again=step.again)


def scenario_file(made: Scenario) -> str:
    """Return it as a file of scenarios has it."""
    steps = [step.model_dump(mode="json", exclude_none=True) for step in made.steps if isinstance(step, Action)]
    return f"[[scenario]]\nname = {toml(made.name)}\nfinal = {toml(made.final)}\nsteps = {toml(steps)}\n"


if __name__ == "__main__":
    sys.stdout.write(scenario_file(scenario(sys.argv[1], PRICE_UPDATE, final="The workbook is in the output folder.")))
