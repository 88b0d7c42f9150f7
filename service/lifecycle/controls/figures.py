"""What graders made of controls: how often they accept them, beside the originals, pair by pair."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from service.domain.controls import ControlKind, ControlsSpec
from service.domain.run_states import Outcome
from service.reporting.agreement import Difference, paired_difference
from service.store import combining, controls, runs
from service.store.combining import Said
from service.store.database import Tx
from service.store.rows import RunFilter

UNFINISHED, NOT_GRADED = "unfinished", "not_graded"


@dataclass(frozen=True, slots=True)
class Side:
    """Deliverables of one side of the pairs that count."""

    n: int
    accepted: int
    acceptance: float | None
    """Null without a pair."""
    mean_fraction: float | None


@dataclass(frozen=True, slots=True)
class KindFigures:
    kind: ControlKind
    controls: int
    """That there are."""
    pairs: int
    """Both verdicts are scores: what all figures are of."""
    excluded: Mapping[str, int]
    """Controls by why their pair does not count: the outcome of whichever has no score, ``unfinished``, ``not_graded``."""
    originals: Side
    altered: Side
    difference: Difference
    """Of acceptance, altered minus original."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The controls that there are and what is said of them and of their originals."""

    controls: Mapping[tuple[str, ControlKind], str]
    """(Original, kind) → run."""
    said: Mapping[str, Said]
    """By run; without those that nothing grades."""


async def seen(tx: Tx, project_id: str, spec: ControlsSpec) -> Seen:
    found = await controls.found(tx, project_id, spec.originals, spec.kinds, spec.seed)
    return Seen(found, await _verdicts(tx, project_id, spec, found))


def figures(spec: ControlsSpec, at: Seen) -> list[KindFigures]:
    """Return the figures as far as the gradings are, by kind in the order asked for. Takes up to seconds."""
    of_kind = {kind: {of: run for (of, k), run in at.controls.items() if k is kind} for kind in spec.kinds}
    return [_of_kind(kind, spec, found, at.said) for kind, found in of_kind.items()]


async def _verdicts(
    tx: Tx, project_id: str, spec: ControlsSpec, found: Mapping[tuple[str, ControlKind], str]
) -> dict[str, Said]:
    plans = await _plans(tx, project_id, spec)
    by_plan: dict[str, set[str]] = {}
    for (of, _), run_id in found.items():
        if of in plans:
            by_plan.setdefault(plans[of], set()).update((of, run_id))
    said: dict[str, Said] = {}
    for plan, run_ids in sorted(by_plan.items()):
        said |= await combining.verdicts_under(tx, project_id, plan, sorted(run_ids))
    return said


async def _plans(tx: Tx, project_id: str, spec: ControlsSpec) -> dict[str, str]:
    where = RunFilter(ids=tuple(spec.originals))
    page = await runs.list(tx, project_id, where, limit=len(spec.originals))
    return {run.id: spec.plan or run.plan for run in page.items}


def _of_kind(kind: ControlKind, spec: ControlsSpec, found: Mapping[str, str], said: Mapping[str, Said]) -> KindFigures:
    excluded: Counter[str] = Counter()
    before: list[float] = []
    after: list[float] = []
    for of in sorted(found):
        pair = said.get(of), said.get(found[of])
        reason = next((r for s in pair if (r := _unscored(s)) is not None), None)
        if reason is not None:
            excluded[reason] += 1
            continue
        before.append(_fraction(pair[0]))
        after.append(_fraction(pair[1]))
    passed = [[float(f >= spec.accepted_from) for f in side] for side in (before, after)]
    return KindFigures(
        kind=kind,
        controls=len(found),
        pairs=len(before),
        excluded=dict(sorted(excluded.items())),
        originals=_side(before, spec),
        altered=_side(after, spec),
        difference=paired_difference(passed[0], passed[1], seed=spec.seed),
    )


def _side(fractions: Sequence[float], spec: ControlsSpec) -> Side:
    n, accepted = len(fractions), sum(f >= spec.accepted_from for f in fractions)
    return Side(n, accepted, accepted / n if n else None, fsum(fractions) / n if n else None)


def _unscored(said: Said | None) -> str | None:
    if said is None:
        return NOT_GRADED
    if said.outcome is None:
        return UNFINISHED
    return None if said.outcome is Outcome.GRADED and said.max_score else str(said.outcome)


def _fraction(said: Said | None) -> float:
    assert said is not None
    assert said.score is not None
    assert said.max_score
    return said.score / said.max_score
