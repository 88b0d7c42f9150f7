"""What the operation of a probe is given, and the method that it tries a judge out with."""

from collections.abc import Sequence

from service.domain.errors import Invalid
from service.domain.probes import ProbeSpec
from service.domain.tasks import GraderSpec
from service.graders.registry import grader_for

_OF_PANELS = frozenset({"quorum", "least_votes", "panel", "tie"})
"""Settings that say something about several judges or votes."""


class ProbeJob(ProbeSpec):
    """What the operation is given: the wish, and the runs that were drawn."""

    runs: list[str]


def judging_spec(specs: Sequence[GraderSpec], spec: ProbeSpec) -> GraderSpec:
    """Return the first method with judges, with this judge alone and one vote. Raises Invalid ``plan_without_judges``."""
    for one in specs:
        grader = grader_for(one.method)
        if grader is not None and grader.queue == "judges":
            kept = {name: value for name, value in one.settings.items() if name not in _OF_PANELS}
            judge = [spec.judge.model_dump(mode="json")]
            return GraderSpec(method=one.method, settings={**kept, "judges": judge, "votes": 1})
    raise Invalid("plan_without_judges", f"plan {spec.plan} has no method with judges for these tasks")
