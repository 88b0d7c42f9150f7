"""Method ``pairwise``: 1 where the deliverable is preferred to the reference, 0 where the reference is, 0.5 in between."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.judging import JudgeSpec, Vote
from service.domain.preferences import Choice, majority
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing
from service.graders.contract import GraderFault, GradingInput
from service.graders.judging.panel import judges_of, together, votes_of
from service.graders.pairwise.asking import SHELF, Pair
from service.graders.pairwise.counting import JudgeSaid, judge_said, needs_tie_break, position
from service.graders.pairwise.settings import PairwiseSettings
from service.graders.pairwise.works import works_of


class PairwiseGrader:
    method = "pairwise"
    version = "1"
    queue: GradingQueue = "judges"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        parsed = parsing.parsed(PairwiseSettings, settings)
        SHELF.prompt(parsed)
        if not any(f.path.startswith(parsed.prefix) for f in task.hidden):
            raise Invalid("unknown_hidden_asset", f"the task has no hidden files below {parsed.prefix!r}")

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(PairwiseSettings, given.settings)
        judges_of(given, settings)
        pair = await _pair(given, settings)
        if pair.works.nothing_delivered:
            return _verdict(settings, Choice.SECOND, [], [], {"reason": "no_evidence"})
        votes = await votes_of(given, settings, "", pair.asking)
        further = await _tie_breaks(given, settings, pair, votes)
        said = [judge_said(j.key, _of(j, votes), _of(j, further)) for j in settings.judges]
        decided = [s.choice for s in said if s.choice is not None]
        if not decided or len(decided) < settings.needed_judges:
            raise GraderFault("judge_error", f"fewer than {settings.needed_judges} judges decided: {_why_not(said)}")
        detail = {"reference_extracted": pair.works.extracted}
        return _verdict(settings, majority(decided), said, [*votes, *further], detail)


async def _pair(given: GradingInput, settings: PairwiseSettings) -> Pair:
    if given.task is None:
        raise GraderFault("task_missing", "the method needs the task")
    try:
        prompt = SHELF.prompt(settings)
    except Invalid as error:
        raise GraderFault("settings_unusable", error.detail) from error
    return Pair(given.task, settings, prompt, await works_of(given, settings), given.seed)


async def _tie_breaks(given: GradingInput, settings: PairwiseSettings, pair: Pair, votes: Sequence[Vote]) -> list[Vote]:
    """Ask each judge without a majority once more, in both orders."""
    way = judges_of(given, settings)
    undecided = [j for j in settings.judges if settings.tie_break and needs_tie_break(_of(j, votes))]

    async def one(judge: JudgeSpec, n: int) -> Vote:
        asking = pair.asking(judge, n)
        return await way.vote(judge, "", n, asking.ask, asking.read)

    return await together(one(j, settings.votes + n) for j in undecided for n in (1, 2))


def _verdict(
    settings: PairwiseSettings,
    choice: Choice,
    said: Sequence[JudgeSaid],
    votes: Sequence[Vote],
    more: Mapping[str, Any],
) -> Verdict:
    detail = {
        "choice": choice,
        "combination": settings.combination,
        "reading": settings.reading,
        "judges": [asdict(s) for s in said],
        "quorum": settings.needed_judges,
        "position": position(votes),
        **more,
    }
    rows = [_criterion(name, _overall(name, said), said) for name in ("completion", "quality")]
    rows.append(_criterion("preference", choice, said, points=1.0))
    return Verdict(VerdictState.GRADED, score=choice.worth, max_score=1.0, criteria=rows, detail=detail)


def _overall(name: str, said: Sequence[JudgeSaid]) -> Choice:
    given = [choice for s in said if (choice := getattr(s, name)) is not None]
    return majority(given) if given else Choice.SECOND


def _criterion(name: str, choice: Choice, said: Sequence[JudgeSaid], points: float = 0.0) -> dict[str, Any]:
    """``passed``: at least as good as the reference."""
    field = "choice" if name == "preference" else name
    return {
        "id": name,
        "passed": choice is not Choice.SECOND,
        "score": points * choice.worth,
        "max_score": points,
        "reason": "" if said else "nothing was delivered",
        "detail": {"choice": choice, "judges": {s.judge: getattr(s, field) for s in said}},
    }


def _of(judge: JudgeSpec, votes: Sequence[Vote]) -> list[Vote]:
    return [v for v in votes if v.judge == judge.key]


def _why_not(said: Sequence[JudgeSaid]) -> str:
    left = [s for s in said if s.choice is None]
    return "; ".join(f"{s.judge}: {s.valid} of {s.votes} votes valid ({', '.join(s.causes)})" for s in left)
