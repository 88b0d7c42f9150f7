"""Method ``human_panel`` (RLI): accepted or rejected by the majority of people's ratings, score 1 or 0 of 1.

No process grades by it: a grading waits in the queue ``people`` until a campaign that holds the run has decided.
"""

from collections.abc import Mapping
from typing import Any

from service.domain.grading_plans import GradingQueue
from service.domain.tasks import Strict, TaskManifest
from service.domain.verdicts import Verdict
from service.graders import parsing
from service.graders.contract import GraderFault, GradingInput

METHOD = "human_panel"
VERSION = "1"


class HumanPanelSettings(Strict):
    campaign: str | None = None
    """Id of the campaign that decided; set by it, where no grading waited for one."""


class HumanPanelGrader:
    method = METHOD
    version = VERSION
    queue: GradingQueue = "people"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:  # noqa: ARG002 - any task will do
        parsing.parsed(HumanPanelSettings, settings)

    async def grade(self, given: GradingInput) -> Verdict:
        del given
        raise GraderFault("people_decide", "this method's verdicts come from campaigns")
