"""Campaigns as the lead sees them."""

from typing import Any

from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.lifecycle.campaigns.figures import Checks, Figures, PairFigures, RaterFigures
from service.reporting.agreement import PairAgreement
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, PreferenceRow, RaterRow


class Rater(View):
    id: str
    name: str
    pseudonym: str
    """What exports and votes call the rater."""
    kind: str
    """person | model | token"""
    categories: list[str]
    state: str
    """invited | active | removed"""
    qualified: bool | None
    """Null: not decided yet, or there is nothing to decide."""
    invitation_expires_at: Timestamp | None
    """Null: there is no invitation that could still be used."""
    created_at: Timestamp
    joined_at: Timestamp | None
    removed_at: Timestamp | None


class InvitedRater(Rater):
    code: str | None
    """One-time code, in this answer only; null for models and tokens."""
    link: str | None
    """Where the rater takes it: the code is in the fragment, which no server is told."""


class InvitedRaters(View):
    data: list[InvitedRater]


class RemovedRater(Rater):
    handed_back: int
    """Items that the rater had in hand; they go to others."""


class Campaign(View):
    id: str
    name: str
    form: str
    """human_panel | pairwise"""
    state: str
    """draft | open | closed"""
    instruction: str
    instruction_version: int
    instruction_sha256: Digest
    spec: dict[str, Any]
    """Selection, pairs, qualification and rules as they were given."""
    labels: dict[str, str]
    items: int
    decided: int
    short: list[dict[str, Any]]
    """Pairs of agents with fewer tasks than wanted: first, second, tasks."""
    revision: int
    created_at: Timestamp
    updated_at: Timestamp | None
    due_at: Timestamp | None
    opened_at: Timestamp | None
    closed_at: Timestamp | None


class Agreement(View):
    n: int
    """Comparisons: items that both rated."""
    agreement: float | None
    kappa: float | None
    """Cohen's; null where it is undefined."""


class RaterProgress(View):
    rater_id: str
    pseudonym: str
    name: str
    state: str
    qualified: bool | None
    in_hand: int
    submitted: int
    skipped: int
    released: int
    active_s: float
    wall_s: float
    with_others: Agreement
    """Acceptance, or the choice, against every other rating of the same items."""
    with_verdicts: float | None
    golds: int
    golds_right: int


class PairProgress(View):
    first: str
    """Pseudonym."""
    second: str
    agreement: Agreement


class CheckFigures(View):
    n: int
    agreeing: int
    share: float | None
    failure_bound: float | None
    """Where none failed: one-sided 95 % upper bound of the rate of failures."""


class Progress(View):
    items: int
    decided: int
    accepted: int | None
    """Null for form pairwise."""
    waiting: dict[str, int]
    """Items by what they wait for: rating, second_pass, adjudication, audit."""
    ratings: int
    raters: list[RaterProgress]
    pairs: list[PairProgress]
    agreement: float | None
    ternary: float | None
    hard_disagreement: float | None
    second_pass: CheckFigures
    audit: CheckFigures
    audit_met: bool | None
    active_s: float
    wall_s: float


class CampaignDetail(Campaign):
    progress: Progress


class Item(View):
    id: str
    position: int
    task_id: str
    run_id: str
    other_run_id: str | None
    """Form pairwise; null there: the human reference."""
    categories: list[str]
    gold: dict[str, Any] | None
    """The right answer of an item that qualifies raters."""
    audited: bool
    want: str | None
    """Purpose of the ratings that it waits for; null: none."""
    wanted: int
    verdict: dict[str, Any] | None
    grading_id: str | None
    identifying: list[dict[str, Any]] | None
    """Names of agents, models … in what raters see: run_id, path, where, name. Null: nobody has looked."""
    decided_at: Timestamp | None


class Rating(View):
    """An item with a rater: in hand, given back, skipped, or rated."""

    id: str
    item_id: str
    position: int
    run_id: str
    other_run_id: str | None
    rater: str
    """Pseudonym."""
    rater_removed: bool
    purpose: str
    """rating | second_pass | adjudication | audit | gold"""
    state: str
    """leased | submitted | skipped | released"""
    swapped: bool
    """The item's second was shown as A."""
    rating: dict[str, Any] | None
    """Form pairwise: ``first`` is ``run_id``'s."""
    reason: str | None
    """Of a skip."""
    instruction_version: int | None
    instruction_sha256: Digest | None
    active_s: float
    wall_s: float
    leased_until: Timestamp | None
    submitted_at: Timestamp | None


class Preference(View):
    id: str
    item_id: str
    task_id: str
    first_run_id: str
    second_run_id: str | None
    """Null: the human reference."""
    first_agent_id: str
    second_agent_id: str | None
    value: float
    """What it gives the first: 1, 0.5 or 0."""
    choices: list[str]
    """first | same | second, one of each rating."""
    combination: str
    """How two scales became one choice; ``rule`` where one of them delivered nothing."""
    created_at: Timestamp


class Scanned(View):
    looked_at: int
    left: int
    """Items whose documents are on their way, or beyond one call's share."""
    identifying: int
    """Items of the campaign that hold a name."""


def campaign_fields(row: CampaignRow) -> dict[str, Any]:
    names = ("id", "name", "form", "state", "instruction", "instruction_version", "labels", "items", "decided", "short",
             "revision", "created_at", "updated_at", "due_at", "opened_at", "closed_at")  # fmt: skip
    apart = {"name", "instruction", "labels", "due_at"}
    fields = {name: getattr(row, name) for name in names}
    spec = row.spec.model_dump(mode="json", exclude=apart)
    return {**fields, "instruction_sha256": sha256_name(row.instruction_sha256), "spec": spec}


def campaign_view(row: CampaignRow) -> Campaign:
    return Campaign(**campaign_fields(row))


def rater_fields(row: RaterRow) -> dict[str, Any]:
    names = ("id", "name", "pseudonym", "categories", "state", "qualified", "invitation_expires_at", "created_at",
             "joined_at", "removed_at")  # fmt: skip
    kind = "model" if row.judge is not None else "token" if row.token_id is not None else "person"
    return {**{name: getattr(row, name) for name in names}, "kind": kind}


def progress_view(found: Figures) -> Progress:
    names = ("items", "decided", "accepted", "waiting", "ratings", "agreement", "ternary", "hard_disagreement",
             "audit_met", "active_s", "wall_s")  # fmt: skip
    return Progress(
        **{name: getattr(found, name) for name in names},
        raters=[_rater_progress(r) for r in found.raters],
        pairs=[_pair(p) for p in found.pairs],
        second_pass=_checks(found.second_pass),
        audit=_checks(found.audit),
    )


def _rater_progress(found: RaterFigures) -> RaterProgress:
    names = ("in_hand", "submitted", "skipped", "released", "active_s", "wall_s", "with_verdicts", "golds",
             "golds_right")  # fmt: skip
    rater = found.rater
    return RaterProgress(
        rater_id=rater.id,
        pseudonym=rater.pseudonym,
        name=rater.name,
        state=rater.state,
        qualified=rater.qualified,
        with_others=_agreement(found.with_others),
        **{name: getattr(found, name) for name in names},
    )


def _pair(found: PairFigures) -> PairProgress:
    return PairProgress(
        first=found.first.pseudonym, second=found.second.pseudonym, agreement=_agreement(found.with_each_other)
    )


def _agreement(found: PairAgreement) -> Agreement:
    return Agreement(n=found.n, agreement=found.agreement, kappa=found.kappa)


def _checks(found: Checks) -> CheckFigures:
    return CheckFigures(n=found.n, agreeing=found.agreeing, share=found.share, failure_bound=found.failure_bound)


def item_view(row: ItemRow) -> Item:
    return Item(**{name: getattr(row, name) for name in Item.model_fields})


def rating_view(a: AssignmentRow, item: ItemRow, rater: RaterRow) -> Rating:
    names = ("id", "item_id", "purpose", "state", "swapped", "rating", "reason", "instruction_version", "active_s",
             "wall_s", "leased_until", "submitted_at")  # fmt: skip
    return Rating(
        **{name: getattr(a, name) for name in names},
        position=item.position,
        run_id=item.run_id,
        other_run_id=item.other_run_id,
        rater=rater.pseudonym,
        rater_removed=rater.removed_at is not None,
        instruction_sha256=sha256_name(a.instruction_sha256) if a.instruction_sha256 else None,
    )


def preference_view(row: PreferenceRow) -> Preference:
    return Preference(**{name: getattr(row, name) for name in Preference.model_fields})
