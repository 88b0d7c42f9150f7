"""The lead's figures from ratings at hand: agreement, opposite words, audits, seconds, who has what in hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.domain.campaigns import CampaignSpec
from service.domain.ratings import Purpose
from service.lifecycle.campaigns.figures import Figures, computed
from service.store.rows_campaigns import AssignmentRow, ItemRow, RaterRow

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PANEL = CampaignSpec.model_validate({"name": "p", "form": "human_panel", "instruction": "Rate."})
PAIRS = CampaignSpec.model_validate(
    {"name": "p", "form": "pairwise", "instruction": "Compare.", "pairs": {"agents": ["a", "b"]}}
)


def item(n: int, verdict: dict[str, Any] | None = None, **more: Any) -> ItemRow:
    values: dict[str, Any] = {
        "project_id": "p", "campaign_id": "c", "position": n, "task_id": "t", "run_id": f"run_{n}", "other_run_id": None,
        "categories": [], "gold": None, "audited": False, "want": None, "wanted": 0, "grading_id": None,
        "identifying": None, "created_at": NOW, "decided_at": None,
    }  # fmt: skip
    return ItemRow(id=f"i{n}", verdict=verdict, **(values | more))


def rater(n: int) -> RaterRow:
    return RaterRow(f"r{n}", "p", "c", f"Person {n}", f"R{n}", [], None, None, "active", None, None, NOW, NOW, None)


def given(who: int, what: int, rating: dict[str, Any] | None, **more: Any) -> AssignmentRow:
    values: dict[str, Any] = {
        "purpose": Purpose.RATING, "state": "submitted" if rating else "leased", "swapped": False, "leased_until": None,
        "started_at": NOW, "active_s": 30.0, "wall_s": 60.0, "rating_digest": None, "client_id": None, "reason": None,
        "instruction_version": 1, "instruction_sha256": None, "created_at": NOW, "submitted_at": NOW,
    }  # fmt: skip
    key = {"id": f"a{who}{what}", "project_id": "p", "campaign_id": "c", "item_id": f"i{what}", "rater_id": f"r{who}"}
    return AssignmentRow(**key, rating=rating, **(values | more))


def panel(found: list[ItemRow], ratings: list[AssignmentRow]) -> Figures:
    return computed(PANEL, found, [rater(1), rater(2)], ratings, NOW)


def test_acceptance_may_agree_where_three_values_do_not() -> None:
    table = [(2, 3, True), (1, 1, False), (1, 3, None), (2, 2, True)]
    found = [item(n, None if said is None else {"accept": said}) for n, (_, _, said) in enumerate(table)]
    ratings = [given(who, n, {"rating": row[who - 1]}) for n, row in enumerate(table) for who in (1, 2)]
    figures = panel(found, ratings)
    assert (figures.decided, figures.accepted, figures.ratings) == (3, 2, 8)
    assert (figures.agreement, figures.ternary, figures.hard_disagreement) == (0.75, 0.5, 0.25)
    (pair,) = figures.pairs
    assert (pair.with_each_other.n, pair.with_each_other.agreement) == (4, 0.75)
    assert pair.with_each_other.kappa == pytest.approx(0.5)
    assert [r.with_verdicts for r in figures.raters] == [1.0, 1.0]
    assert (figures.active_s, figures.wall_s) == (240.0, 480.0)


def test_audits_are_held_against_verdicts_and_bounded_where_none_failed() -> None:
    found = [item(n, {"accept": n < 2}) for n in range(4)]
    right = [given(1, n, {"rating": 2 if n < 2 else 1}, purpose=Purpose.AUDIT) for n in range(4)]
    fine = panel(found, right)
    assert (fine.audit.n, fine.audit.agreeing, fine.audit_met) == (4, 4, True)
    assert fine.audit.failure_bound == pytest.approx(1 - 0.05**0.25)
    wrong = [*right[:3], given(1, 3, {"rating": 3}, purpose=Purpose.AUDIT)]
    missed = panel(found, wrong)
    assert (missed.audit.share, missed.audit_met, missed.audit.failure_bound) == (0.75, False, None)
    assert panel(found, []).audit_met is None


def test_a_lease_that_ran_out_is_in_nobodys_hand() -> None:
    later, before = NOW + timedelta(seconds=1), NOW - timedelta(seconds=1)
    figures = panel([item(0), item(1)], [given(1, 0, None, leased_until=later), given(2, 1, None, leased_until=before)])
    assert [r.in_hand for r in figures.raters] == [1, 0]


def test_gold_items_count_for_nothing_but_the_trial() -> None:
    found = [item(0, gold={"accept": True}), item(1, gold={"accept": False})]
    ratings = [given(1, n, {"rating": 3}, purpose=Purpose.GOLD) for n in range(2)]
    figures = panel(found, ratings)
    assert (figures.items, figures.ratings, figures.raters[0].submitted) == (0, 0, 0)
    assert (figures.raters[0].golds, figures.raters[0].golds_right) == (2, 1)


def test_pairs_disagree_hard_where_choices_are_opposite() -> None:
    words = [("first", "second"), ("first", "same"), ("same", "same"), ("second", "second")]
    ratings = [
        given(who, n, {"completion": pair[who - 1], "quality": "same", "notes": ""})
        for n, pair in enumerate(words)
        for who in (1, 2)
    ]
    figures = computed(PAIRS, [item(n) for n in range(4)], [rater(1), rater(2)], ratings, NOW)
    assert (figures.agreement, figures.ternary, figures.hard_disagreement) == (0.5, 0.5, 0.25)
    assert figures.accepted is None
