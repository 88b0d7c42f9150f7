"""PayWorthy 3.3: majorities per field, labels and their ties, quorum, ties of the panel."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from pydantic import ValidationError

from service.domain.judging import Vote, VoteState
from service.graders.llm_panel.counting import FIELDS, FLAG, cause_of, effective, judge_said, label_of, panel_said
from service.graders.llm_panel.settings import LlmPanelSettings

JUDGES = [{"model": f"m/{n}"} for n in range(5)]


def settings(judges: int = 1, **changed: Any) -> LlmPanelSettings:
    return LlmPanelSettings.model_validate({"judges": JUDGES[:judges], **changed})


def content(pay: bool, reason: str | None = None, **fields: bool) -> dict[str, Any]:
    base = {"produced": True, "on_spec": True, "client_plausible": pay, "pay_worthy": pay, "fabricated": False}
    return effective({**base, **fields, "failure_reason": reason})


def votes(judge: str, *contents: dict[str, Any] | None) -> list[Vote]:
    return [
        Vote(judge, "", n, VoteState.INVALID, cause="schema") if c is None else Vote(judge, "", n, VoteState.VALID, c)
        for n, c in enumerate(contents, 1)
    ]


YES, NO = content(True), content(False)


def test_each_field_has_a_majority_of_its_own() -> None:
    given = votes(
        "j",
        content(True, produced=True, on_spec=False, client_plausible=True),
        content(False, "unverifiable", produced=False, on_spec=True, client_plausible=True),
        content(True, produced=False, on_spec=False, client_plausible=False),
    )
    said = judge_said("j", given, settings())
    assert said.fields == {
        "produced": False, "on_spec": False, "client_plausible": True, "pay_worthy": True, "fabricated": False,
    }  # fmt: skip
    assert said.label is None


def test_fabricated_is_never_worth_paying_for() -> None:
    both = content(True, fabricated=True)
    assert (both["pay_worthy"], both["flag"]) == (False, FLAG)
    said = judge_said("j", votes("j", both, both, YES), settings())
    assert (said.fields["pay_worthy"], said.fields["fabricated"], said.flagged) == (False, True, 2)
    once = judge_said("j", votes("j", both, YES, YES), settings())
    assert (once.fields["pay_worthy"], once.fields["fabricated"], once.flagged) == (True, False, 1)


@pytest.mark.parametrize(
    ("reasons", "label", "cause"),
    [
        (["unverifiable", "unverifiable", "wrong_scope"], "unverifiable", "verification"),
        (["unverifiable", "capability_gap", None], "unverifiable", "verification"),
        (["capability_gap", "unverifiable", "wrong_scope"], "wrong_scope", "scoping"),
        (["fabricated", None, None], "fabricated", "fabrication"),
        (["no_deliverable", "harness_limit", "harness_limit"], "harness_limit", "modality_or_harness"),
        (["missing_context", "missing_context", "missing_context"], "missing_context", "missing_information"),
        ([None, None, None], "unlabeled", "unlabeled"),
    ],
)
def test_the_label_is_the_mode_and_ties_go_by_the_list(reasons: list[str | None], label: str, cause: str) -> None:
    known = settings().labels
    assert {label_of([content(False, r) for r in order], known) for order in permutations(reasons)} == {label}
    assert cause_of(label, known) == cause


def test_only_rejecting_votes_name_the_label() -> None:
    accepting = {**YES, "failure_reason": "wrong_scope"}  # no such vote is read; were it there, it would not count
    given = votes("j", accepting, content(False, "unverifiable"), content(False, "unverifiable"))
    assert judge_said("j", given, settings()).label == "unverifiable"
    assert label_of([accepting, accepting, content(False, "capability_gap")], settings().labels) == "capability_gap"


def test_the_order_of_labels_is_configurable() -> None:
    own = [{"name": "late", "cause": "time"}, {"name": "ugly", "cause": "taste"}]
    pair = [content(False, "late"), content(False, "ugly")]
    assert label_of(pair, settings(labels=own).labels) == "late"
    assert label_of(pair, settings(labels=own[::-1]).labels) == "ugly"


def test_fewer_than_three_valid_votes_leave_a_judge_undecided() -> None:
    said = judge_said("j", votes("j", YES, YES, None), settings())
    assert (said.decided, said.valid, said.votes, said.causes) == (False, 2, 3, ["schema"])
    assert set(said.fields.values()) == {None}
    assert panel_said([said], votes("j", YES, YES, None), settings()) is None
    assert judge_said("j", votes("j", YES, YES, None, NO), settings(votes=4)).decided
    assert judge_said("j", votes("j", YES), settings(votes=1)).decided


def panel(pattern: str, **changed: Any) -> Any:
    """One letter per judge: y accepts, n rejects, ? is undecided."""
    given = settings(len(pattern), **changed)
    of = {"y": [YES] * 3, "n": [content(False, "wrong_scope")] * 3, "?": [YES, None, None]}
    all_votes = [votes(f"j{n}", *of[letter]) for n, letter in enumerate(pattern)]
    said = [judge_said(f"j{n}", mine, given) for n, mine in enumerate(all_votes)]
    return panel_said(said, [v for mine in all_votes for v in mine], given)


@pytest.mark.parametrize(
    ("pattern", "accepted"),
    [
        ("y", True),
        ("n", False),
        ("yy", True),
        ("yn", None),
        ("yyn", True),
        ("ynn", False),
        ("yyynn", True),
        ("yynn?", None),
    ],
)
def test_majority_of_the_panel(pattern: str, accepted: bool | None) -> None:
    for order in set(permutations(pattern)):
        assert panel("".join(order)).accepted is accepted


@pytest.mark.parametrize("pattern", ["?", "y?", "yy??y", "yyy??", "?????"])
def test_too_few_judges_are_no_panel(pattern: str) -> None:
    """PayWorthy: items graded by at least four of five; of up to two judges, all."""
    assert panel(pattern) is None


def test_quorum_and_tie_are_settings() -> None:
    assert panel("yyy??", quorum=3).accepted is True
    assert panel("yn", tie="reject").accepted is False
    assert panel("yynn?", tie="reject").label == "wrong_scope"
    assert panel("yn").label is None


def test_unanimity() -> None:
    assert panel("yyyyy", panel="unanimity").accepted is True
    assert panel("nnnnn", panel="unanimity").accepted is False
    assert panel("yyyyn", panel="unanimity").accepted is None
    assert panel("yyyyn", panel="unanimity", tie="reject").accepted is False
    assert panel("yyyy?", panel="unanimity") is None
    assert panel("yyyyy").unanimous
    assert not panel("yyyy?").unanimous
    assert not panel("yyyyn").unanimous


def test_panel_that_finds_fabrication_rejects() -> None:
    given = settings(3)
    made_up = content(False, "fabricated", fabricated=True)
    all_votes = [votes("a", *[made_up] * 3), votes("b", *[made_up] * 3), votes("c", *[YES] * 3)]
    said = [judge_said(v[0].judge, v, given) for v in all_votes]
    found = panel_said(said, [v for mine in all_votes for v in mine], given)
    assert found is not None
    assert (found.accepted, found.fields["fabricated"], found.label, found.cause) == (
        False, True, "fabricated", "fabrication",
    )  # fmt: skip


def test_panels_fabrication_outweighs_a_tie() -> None:
    """No reading makes a judge that finds fabrication and would pay; were there one, the panel would not."""
    mine = votes("a", *[content(False, "fabricated", fabricated=True)] * 3)
    said = judge_said("a", mine, settings())
    found = panel_said([replace(said, fields={**said.fields, "pay_worthy": True})], mine, settings())
    assert found is not None
    assert found.accepted is False


def test_the_votes_of_undecided_judges_name_no_label() -> None:
    given = settings(3, quorum=2)
    mine = [
        votes("a", content(False, "unverifiable"), NO, NO),
        votes("b", NO, NO, NO),
        votes("c", *[content(False, "wrong_scope")] * 2, None),
    ]
    said = [judge_said(v[0].judge, v, given) for v in mine]
    found = panel_said(said, [v for some in mine for v in some], given)
    assert found is not None
    assert found.label == "unverifiable"


def test_fields_are_those_of_the_paper() -> None:
    assert FIELDS == ("produced", "on_spec", "client_plausible", "pay_worthy", "fabricated")


@pytest.mark.parametrize(
    "changed",
    [
        {"least_votes": 4},
        {"quorum": 2},
        {"labels": []},
        {"labels": [{"name": "a", "cause": "b"}, {"name": "a", "cause": "c"}]},
        {"labels": [{"name": "unlabeled", "cause": "b"}]},
    ],
)
def test_settings_that_could_not_be_met_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**changed)
