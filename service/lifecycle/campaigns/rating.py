"""What raters do: take the next item, keep it, rate it, skip it, give it back. Everything under the campaign's lock."""

from dataclasses import dataclass

from pydantic import ValidationError

from service.domain.campaigns import Form
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound
from service.domain.ratings import PairRating, PanelRating, Purpose
from service.domain.tasks import canonical_digest
from service.lifecycle.campaigns import deciding
from service.store.campaigns import assignments, campaigns, items, raters
from service.store.database import Tx
from service.store.rows import Json
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow


@dataclass(frozen=True, slots=True)
class Who:
    """A rater's session, or a token with scope ``rate``: exactly one of the two is set."""

    project_id: str
    rater_id: str | None = None
    token_id: str | None = None
    campaign_id: str | None = None
    """Of a rater's session."""


@dataclass(frozen=True, slots=True)
class InHand:
    """An assignment with what it belongs to, locked."""

    campaign: CampaignRow
    rater: RaterRow
    assignment: AssignmentRow


async def next_assignment(tx: Tx, who: Who, campaign_id: str) -> AssignmentRow | None:
    """Return what the rater has in hand, else the next item; null: there is nothing (now).

    Raises NotFound, Conflict ``campaign_not_open``, Forbidden ``not_qualified``.
    """
    campaign, rater = await _locked(tx, who, campaign_id)
    campaigns.check_open(campaign)
    found = await assignments.held(tx, rater.id)
    if found is not None:
        return found
    if campaign.spec.qualification is not None and rater.qualified is not True:
        gold = await assignments.next_gold(tx, campaign, rater) if rater.qualified is None else None
        if gold is None:
            raise Forbidden("not_qualified", "the trial items were not rated as they should be; the lead knows")
        return await _lease(tx, campaign, rater, gold, Purpose.GOLD)
    item = await assignments.next_item(tx, campaign, rater)
    return None if item is None else await _lease(tx, campaign, rater, item, item.want or Purpose.RATING)


async def _lease(tx: Tx, campaign: CampaignRow, rater: RaterRow, item: ItemRow, purpose: Purpose) -> AssignmentRow:
    found = await assignments.lease(tx, campaign, rater, item, purpose)
    await campaigns.touch(tx, campaign.id)
    return found


async def in_hand(tx: Tx, who: Who, assignment_id: str) -> InHand:
    """Return the rater's assignment, its campaign locked. Raises NotFound."""
    found = await assignments.of_rater(tx, assignment_id, who.rater_id, who.token_id)
    if found is None or found.project_id != who.project_id:
        raise NotFound("not_found")
    campaign, rater = await _locked(tx, who, found.campaign_id)
    return InHand(campaign, rater, await assignments.load(tx, assignment_id))


async def beat(tx: Tx, who: Who, assignment_id: str, active_s: float) -> AssignmentRow:
    """Keep the item, and note the seconds of work so far. Raises NotFound, Conflict ``assignment_over``."""
    hand = await in_hand(tx, who, assignment_id)
    _check_leased(hand.assignment)
    await _check_wanted(tx, hand)
    return await assignments.keep(tx, hand.campaign, assignment_id, active_s)


async def submit(
    tx: Tx, who: Who, assignment_id: str, rating: Json, client_id: str, active_s: float = 0.0
) -> AssignmentRow:
    """Write the rating and what follows from it. The same rating again changes nothing.

    Raises NotFound, Invalid ``bad_rating``, Conflict ``already_submitted``, ``assignment_over`` (the item went to
    others meanwhile), ``campaign_not_open``.
    """
    hand = await in_hand(tx, who, assignment_id)
    parsed = _parsed(hand.campaign.form, rating)
    digest = canonical_digest(parsed.model_dump(mode="json"))
    if hand.assignment.state == "submitted":
        if hand.assignment.rating_digest != digest:
            raise Conflict("already_submitted", "this item was rated already, and differently")
        return hand.assignment
    await _check_wanted(tx, hand)
    stored = parsed.opinion(swapped=hand.assignment.swapped) if isinstance(parsed, PairRating) else parsed
    body = stored.model_dump(mode="json")
    done = await assignments.submit(tx, hand.campaign, assignment_id, body, digest, client_id, active_s)
    await _follow(tx, hand)
    return done


async def skip(tx: Tx, who: Who, assignment_id: str, reason: str) -> AssignmentRow:
    """Leave the item to others for good. Raises NotFound, Conflict ``assignment_over``."""
    hand = await in_hand(tx, who, assignment_id)
    if hand.assignment.state == "skipped":
        return hand.assignment
    _check_leased(hand.assignment)
    done = await assignments.end(tx, assignment_id, "skipped", reason)
    if hand.assignment.purpose is Purpose.GOLD:
        await _qualify(tx, hand)
    await campaigns.touch(tx, hand.campaign.id)
    return done


async def release(tx: Tx, who: Who, assignment_id: str) -> AssignmentRow:
    """Give the item back for now. Raises NotFound, Conflict ``assignment_over``."""
    hand = await in_hand(tx, who, assignment_id)
    if hand.assignment.state == "released":
        return hand.assignment
    _check_leased(hand.assignment)
    await campaigns.touch(tx, hand.campaign.id)
    return await assignments.end(tx, assignment_id, "released")


async def hand_back(tx: Tx, campaign: CampaignRow, assignment_id: str) -> AssignmentRow:
    """Take an item from the rater who has it, for the lead, who holds the lock. Raises NotFound, Conflict."""
    found = await assignments.get(tx, campaign.id, assignment_id)
    if found is None:
        raise NotFound("not_found")
    _check_leased(found)
    done = await assignments.end(tx, assignment_id, "released")
    await campaigns.touch(tx, campaign.id)
    return done


async def remove_rater(tx: Tx, campaign: CampaignRow, rater_id: str) -> tuple[RaterRow, int]:
    """End a rater's part; what was in hand goes to others. Returns how many items that are. Raises NotFound."""
    rater = await raters.get(tx, campaign.id, rater_id)
    if rater is None:
        raise NotFound("not_found")
    handed = await assignments.release_all(tx, rater_id)
    gone = await raters.remove(tx, rater)
    await campaigns.touch(tx, campaign.id)
    return gone, handed


async def _follow(tx: Tx, hand: InHand) -> None:
    if hand.assignment.purpose is Purpose.GOLD:
        await _qualify(tx, hand)
        await campaigns.touch(tx, hand.campaign.id)
    else:
        await deciding.settle(tx, hand.campaign, await items.get(tx, hand.assignment.item_id))


async def _qualify(tx: Tx, hand: InHand) -> None:
    """Decide whether the rater may go on, once every gold item has an answer; a skipped one is a wrong one."""
    spec = hand.campaign.spec
    if spec.qualification is None:
        return
    given = await assignments.golds_of(tx, hand.rater.id)
    if len(given) < len(spec.qualification.golds):
        return
    right = 0
    for answer in given:
        gold = (await items.get(tx, answer.item_id)).gold or {}
        wanted = gold.get("accept") if spec.form is Form.HUMAN_PANEL else gold.get("choice")
        right += answer.rating is not None and deciding.label_of(spec, answer.rating) == wanted
    await raters.qualify(tx, hand.rater.id, passed=right >= spec.qualification.threshold * len(given) - 1e-9)


async def _locked(tx: Tx, who: Who, campaign_id: str) -> tuple[CampaignRow, RaterRow]:
    campaign = await campaigns.get(tx, who.project_id, campaign_id, lock=True)
    if who.rater_id is not None:
        rater = await raters.get(tx, campaign_id, who.rater_id)
    else:
        rater = await raters.of_token(tx, who.token_id or "", campaign_id)
    if campaign is None or rater is None or rater.state != "active":
        raise NotFound("not_found")
    return campaign, rater


async def _check_wanted(tx: Tx, hand: InHand) -> None:
    """A lease that ran out still counts while nobody else took the item: what was written offline is not lost."""
    campaigns.check_open(hand.campaign)
    a = hand.assignment
    if a.state not in ("leased", "released"):
        raise Conflict("assignment_over", f"this item was {a.state}")
    if a.purpose is Purpose.GOLD or (a.state == "leased" and await assignments.is_live(tx, a.id)):
        return
    item = await items.get(tx, a.item_id)
    if item.want is not a.purpose or await assignments.others(tx, item, hand.rater.id) >= item.wanted:
        raise Conflict("assignment_over", "the lease ran out, and others have taken the item")


def _check_leased(a: AssignmentRow) -> None:
    if a.state != "leased":
        raise Conflict("assignment_over", f"this item was {a.state}")


def _parsed(form: Form, rating: Json) -> PanelRating | PairRating:
    model = PanelRating if form is Form.HUMAN_PANEL else PairRating
    try:
        return model.model_validate(rating)
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Invalid("bad_rating", f"{where}: {first['msg']}".removeprefix(": ")) from e
