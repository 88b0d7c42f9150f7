"""What the lead of a campaign sees: how far it is, how well raters agree, how long they took."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.domain.campaigns import CampaignSpec, Form
from service.domain.preferences import Choice
from service.domain.ratings import Purpose
from service.lifecycle.campaigns.deciding import label_of
from service.reporting.agreement import (
    PairAgreement,
    agreement,
    by_pair,
    hard_disagreement,
    no_failure_bound,
    of_rater,
    pairwise_agreement,
)
from service.store.campaigns import assignments, items, raters
from service.store.clock import now
from service.store.database import Tx
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow


@dataclass(frozen=True, slots=True)
class RaterFigures:
    rater: RaterRow
    in_hand: int
    submitted: int
    """Gold items not counted."""
    skipped: int
    released: int
    active_s: float
    wall_s: float
    with_others: PairAgreement
    with_verdicts: float | None
    """Share of the rater's ratings that say what was decided."""
    golds: int
    golds_right: int


@dataclass(frozen=True, slots=True)
class PairFigures:
    first: RaterRow
    second: RaterRow
    with_each_other: PairAgreement


@dataclass(frozen=True, slots=True)
class Checks:
    """Ratings that checked what was decided before them."""

    n: int
    agreeing: int
    share: float | None
    failure_bound: float | None
    """Where nothing failed: the one-sided 95 % upper bound of the rate of failures."""


@dataclass(frozen=True, slots=True)
class Figures:
    items: int
    decided: int
    accepted: int | None
    """Form human_panel."""
    waiting: dict[str, int]
    """Items by what they wait for."""
    ratings: int
    raters: list[RaterFigures]
    pairs: list[PairFigures]
    agreement: float | None
    """Over all pairs of ratings of one item: acceptance, or the choice."""
    ternary: float | None
    """The same of 1, 2 and 3, or of first, same and second."""
    hard_disagreement: float | None
    """Share of pairs that say opposite things: 1 and 3, or first and second."""
    second_pass: Checks
    audit: Checks
    audit_met: bool | None
    """Whether audits agree as often as is aimed at; null without one."""
    active_s: float
    wall_s: float


async def figures(tx: Tx, campaign: CampaignRow) -> Figures:
    """Compute all figures from the ratings. Reads the whole campaign."""
    found = await items.all_of(tx, campaign.id)
    people = await raters.of_campaign(tx, campaign.id)
    given = await assignments.of_campaign(tx, campaign.id)
    return computed(campaign.spec, found, people, given, await now(tx))


def computed(
    spec: CampaignSpec,
    found: Sequence[ItemRow],
    people: Sequence[RaterRow],
    given: Sequence[AssignmentRow],
    at: datetime,
) -> Figures:
    """As :func:`figures`, of rows at hand."""
    proper = {i.id: i for i in found if i.gold is None}
    rated = [a for a in given if a.state == "submitted" and a.item_id in proper]
    labels = _by_rater(rated, {a.id: label_of(spec, a.rating or {}) for a in rated})
    fine = [_fine(spec, a) for a in rated]
    of_item: dict[str, list[Hashable]] = defaultdict(list)
    fine_of_item: dict[str, list[Hashable]] = defaultdict(list)
    for a, label in zip(rated, fine, strict=True):
        of_item[a.item_id].append(labels[a.rater_id][a.item_id])
        fine_of_item[a.item_id].append(label)
    waiting: dict[str, int] = defaultdict(int)
    for item in proper.values():
        if item.want is not None:
            waiting[item.want] += 1
    audit = _checks(spec, rated, proper, Purpose.AUDIT)
    by_id = {r.id: r for r in people}
    return Figures(
        items=len(proper),
        decided=sum(i.verdict is not None for i in proper.values()),
        accepted=_accepted(spec, proper.values()),
        waiting=dict(waiting),
        ratings=len(rated),
        raters=[_of_rater(spec, r, found, given, labels, at) for r in people],
        pairs=[PairFigures(by_id[a], by_id[b], pair) for (a, b), pair in by_pair(labels).items() if pair.n],
        agreement=pairwise_agreement(of_item.values()),
        ternary=pairwise_agreement(fine_of_item.values()),
        hard_disagreement=hard_disagreement(fine_of_item.values(), _NEUTRAL[spec.form]),
        second_pass=_checks(spec, rated, proper, Purpose.SECOND_PASS),
        audit=audit,
        audit_met=None if audit.share is None else audit.share >= spec.audit_target,
        active_s=sum(a.active_s for a in given),
        wall_s=sum(a.wall_s for a in given),
    )


_NEUTRAL: dict[Form, Hashable] = {Form.HUMAN_PANEL: 2, Form.PAIRWISE: Choice.SAME}


def _fine(spec: CampaignSpec, a: AssignmentRow) -> Hashable:
    rating = a.rating or {}
    return rating["rating"] if spec.form is Form.HUMAN_PANEL else label_of(spec, rating)


def _by_rater(rated: Sequence[AssignmentRow], label: dict[str, bool | Choice]) -> dict[str, dict[str, Hashable]]:
    found: dict[str, dict[str, Hashable]] = defaultdict(dict)
    for a in rated:
        found[a.rater_id][a.item_id] = label[a.id]
    return found


def _accepted(spec: CampaignSpec, found: Iterable[ItemRow]) -> int | None:
    if spec.form is not Form.HUMAN_PANEL:
        return None
    return sum(i.verdict is not None and i.verdict.get("accept") is True for i in found)


def _decided_label(spec: CampaignSpec, item: ItemRow) -> Hashable:
    verdict = item.verdict or {}
    return verdict.get("accept") if spec.form is Form.HUMAN_PANEL else verdict.get("choice")


def _checks(spec: CampaignSpec, rated: Sequence[AssignmentRow], proper: dict[str, ItemRow], purpose: Purpose) -> Checks:
    """Second passes checked successes; audits checked what stands."""
    checks = [a for a in rated if a.purpose is purpose]
    agreeing = 0
    for a in checks:
        wanted = True if purpose is Purpose.SECOND_PASS else _decided_label(spec, proper[a.item_id])
        agreeing += label_of(spec, a.rating or {}) == wanted
    n = len(checks)
    return Checks(n, agreeing, agreeing / n if n else None, no_failure_bound(n) if agreeing == n else None)


def _of_rater(
    spec: CampaignSpec,
    rater: RaterRow,
    found: Sequence[ItemRow],
    given: Sequence[AssignmentRow],
    labels: dict[str, dict[str, Hashable]],
    at: datetime,
) -> RaterFigures:
    mine = [a for a in given if a.rater_id == rater.id]
    by_id = {i.id: i for i in found}
    proper = [a for a in mine if a.purpose is not Purpose.GOLD]
    golds = [a for a in mine if a.purpose is Purpose.GOLD and a.state == "submitted"]
    said = labels.get(rater.id, {})
    decided = [item for item in said if by_id[item].verdict is not None]
    return RaterFigures(
        rater=rater,
        in_hand=sum(a.state == "leased" and a.leased_until is not None and a.leased_until > at for a in mine),
        submitted=sum(a.state == "submitted" for a in proper),
        skipped=sum(a.state == "skipped" for a in proper),
        released=sum(a.state == "released" for a in proper),
        active_s=sum(a.active_s for a in mine),
        wall_s=sum(a.wall_s for a in mine),
        with_others=of_rater(labels, rater.id) if rater.id in labels else PairAgreement(0, None, None),
        with_verdicts=agreement([said[i] for i in decided], [_decided_label(spec, by_id[i]) for i in decided]),
        golds=len(golds),
        golds_right=sum(label_of(spec, a.rating or {}) == _gold(spec, by_id[a.item_id]) for a in golds),
    )


def _gold(spec: CampaignSpec, item: ItemRow) -> Hashable:
    gold = item.gold or {}
    return gold.get("accept") if spec.form is Form.HUMAN_PANEL else gold.get("choice")
