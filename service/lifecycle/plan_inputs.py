"""The paths and times that every plan gets."""

from service.sandboxes.contract import HOME, OUTPUT_DIR, WORKSPACE
from service.scaffolds.contract import PlanContext

INSTRUCTION_FILE = f"{HOME}/instruction.md"


def plan_context(sample: int, seconds: float, deadline_unix: int) -> PlanContext:
    return PlanContext(
        sample=sample,
        seconds=max(0.0, seconds),
        deadline_unix=deadline_unix,
        workspace=WORKSPACE,
        home=HOME,
        output_dir=OUTPUT_DIR,
        instruction_file=INSTRUCTION_FILE,
    )
