import pytest

from service.domain.run_states import Outcome
from service.domain.verdicts import Verdict, VerdictState, outcome_of

G, A, F = VerdictState.GRADED, VerdictState.ABSTAINED, VerdictState.FAILED


@pytest.mark.parametrize(
    ("states", "outcome"),
    [
        ([], Outcome.UNGRADED), ([G], Outcome.GRADED), ([G, G], Outcome.GRADED), ([G, A], Outcome.ABSTAINED),
        ([A, F], Outcome.UNGRADED), ([G, F], Outcome.UNGRADED),
    ],
)  # fmt: skip
def test_outcome(states: list[VerdictState], outcome: Outcome) -> None:
    assert outcome_of(states) is outcome


def test_only_a_graded_verdict_has_a_score() -> None:
    with pytest.raises(ValueError, match="score"):
        Verdict(F, score=0.0, max_score=1.0)
    with pytest.raises(ValueError, match="score"):
        Verdict(G)
