"""One grading of a probe: a document under a condition, decided by the method as it stands. It leaves no grading or vote."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.domain.errors import Unavailable
from service.domain.evidence import EvidenceDocument
from service.domain.judging import Vote
from service.domain.probes import Outcome
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import EvidenceSource, Grader, GraderBusy, GraderFault, GradingInput
from service.lifecycle.vote_writer import VoteWriter
from service.store.votes import NewVote

PATIENCE_S = 900.0
"""How long a judge that is away is asked again, in one grading."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0


class Unkept(VoteWriter):
    """Keeps no vote: a probe's answers are no opinions on anybody's work. Remembers what the judge calls itself."""

    def __init__(self) -> None:
        self.models: set[str] = set()
        self.prompt: str | None = None
        """Name@version of the last one."""

    async def write(self, new: NewVote, blobs: Mapping[str, bytes]) -> Vote:
        del blobs
        if new.vote.model is not None:
            self.models.add(new.vote.model)
        self.prompt = new.vote.template or self.prompt
        return new.vote

    async def settle(self) -> None:
        """Nothing is left to write."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Implements ``EvidenceSource``: a document that stands in for a deliverable's own."""

    changed: EvidenceDocument
    sources: Sequence[EvidenceSource]
    """Where its pictures are."""

    async def document(self) -> EvidenceDocument:
        return self.changed

    async def image(self, sha256: str) -> bytes:
        for source in self.sources[:-1]:
            try:
                return await source.image(sha256)
            except GraderFault:
                continue
        return await self.sources[-1].image(sha256)


async def judged(
    grader: Grader, given: GradingInput, run_id: str, models: set[str], first_pause_s: float = FIRST_PAUSE_S
) -> Outcome:
    """Return the outcome; a judge that stays away longer than the patience is one too, without a fraction."""
    pause, left = first_pause_s, PATIENCE_S
    while True:
        try:
            verdict = await grader.grade(given)
        except GraderFault as error:
            return Outcome(run_id, None, cause=error.type, models=tuple(sorted(models)))
        except (GraderBusy, Unavailable) as error:
            if left <= 0:
                return Outcome(run_id, None, cause=error.type, models=tuple(sorted(models)))
        else:
            return replace(outcome_of(run_id, verdict), models=tuple(sorted(models)))
        await asyncio.sleep(pause)
        left -= pause
        pause = min(2 * pause, LONGEST_PAUSE_S)


def outcome_of(run_id: str, verdict: Verdict) -> Outcome:
    if verdict.state is not VerdictState.GRADED or verdict.score is None or not verdict.max_score:
        return Outcome(run_id, None, cause=verdict.cause or str(verdict.state))
    answers = {str(c["id"]): bool(c["passed"]) for c in verdict.criteria if c.get("passed") is not None}
    return Outcome(run_id, verdict.score / verdict.max_score, answers)
