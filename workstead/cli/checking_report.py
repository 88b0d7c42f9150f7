"""What ``benchmarks check`` says of items: the state that follows from findings, the table, the exit code."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workstead.cli.common import FAILED, GRADED, out
from workstead.cli.tables import plain_table
from workstead.models import Run
from workstead.terminal import one_line

State = Literal["ok", "suspect", "broken"]
NOT_APPLICABLE = "not_applicable"
STATES: tuple[State, ...] = ("ok", "suspect", "broken")
MAX_REASONS = 50


@dataclass(slots=True)
class Finding:
    """Everything found of one item."""

    oracle: str = NOT_APPLICABLE
    nop: str = NOT_APPLICABLE
    suspicions: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    remarks: list[str] = field(default_factory=list[str])
    """What is no reason to doubt the item, such as why something could not be tried."""
    runs: dict[str, str] = field(default_factory=dict[str, str])

    def oracle_ended(self, run: Run) -> None:
        """The reference solution must get full marks."""
        self.oracle, self.runs["oracle"] = _how(run), run.id
        if self.oracle == "failed":
            self.faults.append(f"the reference solution gets {_score(run)}")
        elif self.oracle != "passed":
            self.suspicions.append(f"the run of the reference solution has no score ({_why(run)})")

    def nop_ended(self, run: Run) -> None:
        """An agent that does nothing must not."""
        self.nop, self.runs["nop"] = _how(run), run.id
        if self.nop == "passed":
            self.faults.append(f"an agent that does nothing gets {_score(run)}")
        elif self.nop != "failed":
            self.suspicions.append(f"the run that does nothing has no score ({_why(run)})")

    def state(self) -> State:
        return "broken" if self.faults else "suspect" if self.suspicions else "ok"

    def as_check(self) -> dict[str, Any]:
        """Return what the service keeps."""
        said = [*self.faults, *self.suspicions, *self.remarks]
        return {
            "state": self.state(),
            "oracle": self.oracle,
            "nop": self.nop,
            "reasons": [one_line(reason, 1_000) for reason in said[:MAX_REASONS]],
            "runs": self.runs,
        }


def _how(run: Run) -> str:
    if run.outcome != "graded" or run.verdict.passed is None:
        return run.outcome or "unknown"
    return "passed" if run.verdict.passed else "failed"


def _score(run: Run) -> str:
    score, most = run.verdict.score, run.verdict.max_score
    return "no score" if score is None or most is None else f"{score:g} of {most:g}"


def _why(run: Run) -> str:
    return f"{run.outcome or run.phase}, {run.ended_because or 'not ended'}"


def show_checks(checks: Mapping[str, Mapping[str, Any]]) -> None:
    """Print how many items are in each state, and each item with what was found."""
    counts = Counter(found["state"] for found in checks.values())
    out.print(plain_table(("state", "items"), [(state, counts[state]) for state in STATES]))
    rows = [
        (key, found["state"], found["oracle"], found["nop"], "; ".join(found["reasons"]))
        for key, found in checks.items()
    ]
    out.print(plain_table(("item", "state", "oracle", "nop", "reasons"), rows))


def exit_code(checks: Mapping[str, Mapping[str, Any]]) -> int:
    return FAILED if any(found["state"] == "broken" for found in checks.values()) else GRADED
