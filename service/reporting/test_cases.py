"""Tasks with test cases (the Freelance benchmark): solved if all pass, and how many went wrong."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checked:
    """One run."""

    tests: int
    wrong: int
    certified: bool | None = None
    """Points reach the passing score (shape B of the set); null where there is none."""


@dataclass(frozen=True, slots=True)
class Tally:
    attempted: int
    solved: int
    success_rate: float | None
    tests: int
    passed: int
    test_accuracy: float | None
    """Passed / all tests, of all tasks together."""
    histogram: dict[int, int]
    """How many went wrong → tasks, from 0 to the most tests of a task, without gaps."""
    with_passing_score: int
    certified: int
    """Reach their passing score: a task can, and not be solved."""

    @property
    def wrong(self) -> int:
        return self.tests - self.passed


def tally(results: Iterable[Checked]) -> Tally:
    """Return the figures of the Freelance paper, section 5: solved / attempted, passed / tests, histogram of wrong tests.

    Timeouts, crashes and missing programs are wrong tests here; why they were, is told apart by their causes. Numbers of tests
    may differ between tasks. Raises ValueError for a task without tests, or with more wrong than it has.
    """
    results = list(results)
    if any(not 0 <= r.wrong <= r.tests or r.tests == 0 for r in results):
        raise ValueError("a task has at least one test, and no more wrong than that")
    counts = Counter(r.wrong for r in results)
    tests, wrong = sum(r.tests for r in results), sum(r.wrong for r in results)
    most = max((r.tests for r in results), default=-1)
    return Tally(
        attempted=len(results),
        solved=counts[0],
        success_rate=counts[0] / len(results) if results else None,
        tests=tests,
        passed=tests - wrong,
        test_accuracy=(tests - wrong) / tests if tests else None,
        histogram={n: counts[n] for n in range(most + 1)},
        with_passing_score=sum(r.certified is not None for r in results),
        certified=sum(bool(r.certified) for r in results),
    )
