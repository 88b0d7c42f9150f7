"""From the outcomes of a probe's cases to its report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.domain.judging import JudgeSpec
from service.domain.probes import Cost, Outcome, ProbeReport, ProbeSpec, Section, Shift
from service.lifecycle.probing.cases import ALTERED, DRIFT, INJECTION, LENGTH, ORDER, REPEAT
from service.reporting import probing

Found = Mapping[tuple[str, str], Outcome]
"""(run, condition) → outcome."""


@dataclass(frozen=True, slots=True)
class About:
    judge: JudgeSpec
    plan: str
    method: str
    method_version: str
    prompt: str
    runs: Sequence[str]


def report_of(
    spec: ProbeSpec, about: About, found: Found, stored: Mapping[str, Mapping[str, bool]], cost: Cost
) -> ProbeReport:
    """``stored``: whom the judge is compared with → run → passed."""
    rounds = [of_condition(found, name) for name in sorted({c for _, c in found if c.startswith(REPEAT)}, key=_number)]

    def shifts(prefix: str) -> dict[str, Shift]:
        names = sorted({c for _, c in found if c.startswith(prefix)})
        return {n.removeprefix(prefix): probing.shift(rounds, of_condition(found, n), spec.seed) for n in names}

    def one(name: str, section: Section) -> Shift | None:
        asked = section in spec.sections
        return probing.shift(rounds, of_condition(found, name), spec.seed) if asked else None

    own = probing.repeats(rounds) if Section.REPEATS in spec.sections else None
    altered, hostile, benign = shifts(ALTERED), shifts(INJECTION), shifts(DRIFT)
    order, length = one(ORDER, Section.ORDER), one(LENGTH, Section.LENGTH)
    neutral = {name: value for name, value in (("order", order), ("length", length)) if value is not None}
    first = rounds[0] if rounds else []
    return ProbeReport(
        judge=about.judge,
        judge_key=about.judge.key,
        reported_models=sorted({m for o in found.values() for m in o.models}),
        plan=about.plan,
        method=about.method,
        method_version=about.method_version,
        prompt=about.prompt,
        seed=spec.seed,
        runs=list(about.runs),
        repeats=own,
        altered=altered,
        injection=hostile,
        drift=benign,
        order=order,
        length=length,
        compared=[probing.compared(name, first, verdicts) for name, verdicts in stored.items()],
        failures=probing.failures([*found.values()]),
        cost=cost,
        concerns=probing.concerns(own, altered, hostile, benign, neutral),
    )


def of_condition(found: Found, condition: str) -> list[Outcome]:
    return [outcome for (_, name), outcome in found.items() if name == condition]


def _number(name: str) -> int:
    return int(name.removeprefix(REPEAT))


def cost_per_grading(usd: float | None, outcomes: Iterable[Outcome]) -> float | None:
    count = sum(1 for _ in outcomes)
    return None if usd is None or not count else usd / count
