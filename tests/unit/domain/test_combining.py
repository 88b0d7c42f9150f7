"""How several gradings make one score."""

import pytest

from service.domain.combining import Counted, combined
from service.domain.grading_plans import Combine, PlanGrader, PlanSpec, specs_for
from service.domain.tasks import GraderSpec
from service.domain.verdicts import VerdictState

GRADED = VerdictState.GRADED


@pytest.mark.parametrize(
    ("rule", "expected"), [(Combine.SUM, (5.0, 12.0)), (Combine.MEAN, (0.45, 1.0)), (Combine.MIN, (0.4, 1.0))]
)
def test_rules(rule: Combine, expected: tuple[float, float]) -> None:
    assert combined(rule, [Counted(GRADED, 4.0, 10.0), Counted(GRADED, 1.0, 2.0)]) == pytest.approx(expected)


@pytest.mark.parametrize("rule", Combine)
def test_what_could_give_no_points_says_nothing(rule: Combine) -> None:
    nothing = Counted(GRADED, 0.0, 0.0)
    assert combined(rule, [nothing]) == (0.0, 0.0)
    score, most = combined(rule, [nothing, Counted(GRADED, 3.0, 4.0)])
    assert score / most == 0.75


def test_a_grading_without_a_score_is_never_combined() -> None:
    with pytest.raises(ValueError, match="with a score"):
        combined(Combine.SUM, [Counted(GRADED, 1.0, 1.0), Counted(VerdictState.FAILED, None, None)])


def test_a_plan_lays_its_settings_over_the_tasks_own() -> None:
    own = [GraderSpec(method="a", settings={"x": 1, "y": {"deep": 1}}), GraderSpec(method="c", settings={})]
    plan = PlanSpec(
        graders=[
            PlanGrader(method="a", settings={"y": {"other": 2}}),
            PlanGrader(method="b", settings={"z": 3}, primary=False),
            PlanGrader(method="d", only_where_named=True),
        ]
    )
    assert specs_for(plan, own) == [
        (GraderSpec(method="a", settings={"x": 1, "y": {"other": 2}}), True),
        (GraderSpec(method="b", settings={"z": 3}), False),
    ]
    assert specs_for(PlanSpec(), own) == [(spec, True) for spec in own]
