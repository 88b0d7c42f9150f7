"""What a grading method gives. A grader sees the sealed deliverable and the task's hidden assets, and nothing else.

Whose fault decides the state: what the agent delivered badly (a missing file, broken JSON) is a *graded* verdict with
few points; what we brought badly (hidden asset gone, settings that do not fit) is :class:`GraderFault` → ``failed``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from service.domain.artifacts import ArtifactEntry
from service.domain.errors import Fault
from service.domain.evidence import EvidenceDocument
from service.domain.grading_plans import GradingQueue
from service.domain.integrity import IntegrityReport
from service.domain.judging import MOST_ASKS, JudgeSpec, Vote
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict
from service.models.messages import Image
from service.sandboxes.rooms import Rooms

INTEGRITY_UNAVAILABLE = "integrity_unavailable"
"""Cause of a grading that waits for the integrity report: it is made again before the grading is due again."""


class GraderFault(Fault):
    """The method cannot decide, by a fault of ours that a repetition will not cure; ``type`` becomes the cause."""


class GraderBusy(Fault):
    """The method cannot decide now (a judge is away, a store is full): worth repeating."""


class InvalidVote(ValueError):
    """A judge's answer that is no vote; the message is the cause in one word, ``schema`` or ``canary_passed``, say."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked once."""

    system: str
    """Rules and criteria; nothing of the deliverable."""
    text: str
    """The rest, what was delivered inside a data block of this question's own nonce."""
    template: str
    """Name@version of the prompt."""
    template_text: str
    images: Sequence[Image] = ()
    """In the order in which the text names them."""


class Judges(Protocol):
    """The judges of one grading: asks, records, and never asks twice for what is recorded."""

    async def vote(
        self,
        judge: JudgeSpec,
        item: str,
        n: int,
        ask: Callable[[int], Question],
        read: Callable[[str], dict[str, Any]],
        *,
        asks: int = MOST_ASKS,
    ) -> Vote:
        """Return vote ``n`` (from 1) of the judge on ``item``: the recorded one, or what the judge says now, recorded.

        ``ask(try)`` gives the question of each try, from 0; ``read`` turns an answer into the vote's content or raises
        InvalidVote: then the judge is asked again, ``asks`` times in all, and after that the vote is invalid. Many votes
        may be asked for at once: how many calls leave at once is kept here. Raises GraderBusy ``judge_unavailable`` (away,
        limited: asked again later), GraderFault ``judge_misconfigured`` (no such model, no key), ``judge_refused`` (the
        provider's no to this very request), ``context_too_long``, ``budget_exhausted``.
        """
        ...


class EvidenceSource(Protocol):
    async def document(self) -> EvidenceDocument:
        """Return the deliverable's document, made now if need be. Raises GraderFault or GraderBusy ``evidence_*``."""
        ...

    async def image(self, sha256: str) -> bytes:
        """Return the bytes of one of its pictures. Raises GraderFault ``evidence_missing``."""
        ...


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
    task: TaskManifest | None = None
    """Instruction, facets, price; null only in tests of methods that read none of it."""
    content_of: Callable[[str], Path] | None = None
    """File of a digest in the content store, for writing many files into a room; it may be gone. Null only in tests."""
    open_visible: Callable[[str], BinaryIO] | None = None
    """Open a visible file of the task by path. Raises GraderFault ``visible_missing``."""
    judges: Judges | None = None
    """Null: this grader process has no way to models."""
    evidence: EvidenceSource | None = None
    keep: Callable[[int, Sequence[Mapping[str, Any]]], Awaitable[None]] | None = None
    """Write criteria, from this position on, as they are decided: shown before the verdict, which replaces them."""
    seed: str = ""
    """Differs by deliverable, settings and round: orders that must vary are drawn from it and the vote's number."""
    secret: str = ""
    """Nobody could know it when the work was delivered: numbers that no deliverable may hold are drawn from it. Empty: they
    are drawn by chance."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What only some methods need, by name: ``client_facts`` and ``client_transcript`` (text) where the run has them,
    ``environment`` (the image that the task's verifier runs in), ``reference_evidence`` (hidden files → their
    EvidenceSource)."""


class Grader(Protocol):
    method: str
    version: str
    """Raised whenever the same input could get another verdict."""
    queue: GradingQueue

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        """Refuse settings that could never grade this task. Raises Invalid."""
        ...

    async def grade(self, given: GradingInput) -> Verdict:
        """Decide. Raises GraderFault, GraderBusy."""
        ...
