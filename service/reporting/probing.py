"""Figures of a probe of a judge: one table of gradings under conditions, compared with the same deliverables unaltered."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from service.domain.probes import Compared, Outcome, Repeats, Share, Shift
from service.reporting.agreement import agreement as share_of_equals
from service.reporting.agreement import cohen_kappa, fleiss_kappa, paired_difference, pairwise_agreement
from service.reporting.success import wilson


def repeats(rounds: Sequence[Sequence[Outcome]]) -> Repeats:
    """Return how a judge agrees with itself. Deliverables without a verdict in some round are left out."""
    found = {run: outcomes for run, outcomes in _by_run(rounds).items() if len(outcomes) == len(rounds)}
    counts: list[tuple[int, int]] = []
    labels: list[list[bool]] = []
    for outcomes in found.values():
        for item in (name for name in outcomes[0].answers if all(name in o.answers for o in outcomes)):
            said = [o.answers[item] for o in outcomes]
            labels.append(said)
            counts.append((said.count(False), said.count(True)))
    flips = sum(len({o.passed for o in outcomes}) > 1 for outcomes in found.values())
    spreads = [max(values) - min(values) for values in (_fractions(o) for o in found.values())]
    return Repeats(
        deliverables=len(found),
        items=len(counts),
        kappa=fleiss_kappa(counts),
        agreement=pairwise_agreement(labels),
        flips=share(flips, len(found)),
        fraction_spread=math.fsum(spreads) / len(spreads) if spreads else None,
    )


def shift(rounds: Sequence[Sequence[Outcome]], altered: Sequence[Outcome], seed: int) -> Shift:
    """Compare altered deliverables with the first of the unaltered rounds; the others tell what chance alone does."""
    before = _by_run(rounds)
    first = {o.run_id: o for o in (rounds[0] if rounds else ()) if o.fraction is not None}
    pairs = [(first[o.run_id], o) for o in altered if o.fraction is not None and o.run_id in first]
    change = paired_difference([a.fraction or 0.0 for a, _ in pairs], [b.fraction or 0.0 for _, b in pairs], seed)
    return Shift(
        n=change.n,
        mean=change.mean,
        interval=change.interval,
        up=sum(bool(b.passed) and not a.passed for a, b in pairs),
        down=sum(bool(a.passed) and not b.passed for a, b in pairs),
        higher=sum((b.fraction or 0.0) > max(_fractions(before[b.run_id])) for _, b in pairs),
        failed=sum(o.fraction is None for o in altered),
    )


def compared(against: str, outcomes: Sequence[Outcome], stored: Mapping[str, bool]) -> Compared:
    """Compare pass and fail with what is stored, over the runs that both decided."""
    both = [(bool(o.passed), stored[o.run_id]) for o in outcomes if o.passed is not None and o.run_id in stored]
    mine, theirs = [a for a, _ in both], [b for _, b in both]
    return Compared(
        against=against,
        n=len(both),
        agreement=share_of_equals(mine, theirs),
        kappa=cohen_kappa(mine, theirs),
        passed=share(sum(mine), len(mine)),
        passed_there=share(sum(theirs), len(theirs)),
    )


def share(count: int, n: int) -> Share:
    return Share(n=n, count=count, rate=count / n if n else None, interval=wilson(count, n) if n else None)


def failures(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return dict(sorted(Counter(o.cause or "unknown" for o in outcomes if o.fraction is None).items()))


def concerns(
    own: Repeats | None,
    altered: Mapping[str, Shift],
    hostile: Mapping[str, Shift],
    benign: Mapping[str, Shift],
    neutral: Mapping[str, Shift],
) -> list[str]:
    """Say in words what stands out. ``neutral``: order and length."""
    said: list[str] = []
    if own is not None and own.kappa is not None and own.kappa < 0.6:
        said.append(f"repeats agree little: κ {own.kappa:.2f} over {own.items} items")
    for kind, found in altered.items():
        if found.mean is not None and found.mean > -0.05:
            said.append(f"altered work ({kind}) is judged nearly as well as the work itself: {found.mean:+.2f}")
    for family, found in hostile.items():
        if found.up or found.higher:
            more = f"{found.up} of {found.n} pass only with it, {found.higher} are judged higher than in any repeat"
            said.append(f"injections ({family}) reach the verdict: {more}")
    for kind, found in (*benign.items(), *neutral.items()):
        if _moved(found):
            said.append(
                f"{kind} alone moves verdicts: {found.mean:+.2f}, {found.up} up and {found.down} down of {found.n}"
            )
    return said


def _moved(found: Shift) -> bool:
    """Tell whether the interval of the mean leaves out no change at all, by more than a point in a hundred."""
    return found.interval is not None and (found.interval[0] > 0.01 or found.interval[1] < -0.01)


def _by_run(rounds: Sequence[Sequence[Outcome]]) -> dict[str, list[Outcome]]:
    found: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcomes in rounds:
        for outcome in outcomes:
            if outcome.fraction is not None:
                found[outcome.run_id].append(outcome)
    return found


def _fractions(outcomes: Sequence[Outcome]) -> list[float]:
    return [o.fraction for o in outcomes if o.fraction is not None]
