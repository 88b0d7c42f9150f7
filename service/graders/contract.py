"""What a grading method gives. A grader sees the sealed deliverable and the task's hidden assets, and nothing else.

Whose fault decides the state: what the agent delivered badly (a missing file, broken JSON) is a *graded* verdict with
few points; what we brought badly (hidden asset gone, settings that do not fit) is :class:`GraderFault` → ``failed``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from service.domain.artifacts import ArtifactEntry
from service.domain.errors import Fault
from service.domain.integrity import IntegrityReport
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict
from service.sandboxes.rooms import Rooms


class GraderFault(Fault):
    """The method cannot decide, by a fault of ours that a repetition will not cure; ``type`` becomes the cause."""


class GraderBusy(Fault):
    """The method cannot decide now (a judge is away, a store is full): worth repeating."""


@dataclass(frozen=True, slots=True)
class GradingInput:
    settings: Mapping[str, Any]
    entries: Sequence[ArtifactEntry]
    """Everything that was in the deliverable, what could not be sealed included."""
    open_hidden: Callable[[str], BinaryIO]
    """Open a hidden asset by path. Raises GraderFault ``hidden_missing``."""
    open_deliverable: Callable[[ArtifactEntry], BinaryIO]
    """Open a sealed file. Raises GraderFault ``deliverable_missing`` if the content store lost it."""
    integrity: IntegrityReport | None = None
    """Whether each file opens as what it claims; null where that could not be found out."""
    rooms: Rooms | None = None
    """Sandboxes for running what was delivered; null where this grader process has no engine."""


class Grader(Protocol):
    method: str
    version: str
    """Raised whenever the same input could get another verdict."""

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        """Refuse settings that could never grade this task. Raises Invalid."""
        ...

    async def grade(self, given: GradingInput) -> Verdict:
        """Decide. Raises GraderFault, GraderBusy."""
        ...
