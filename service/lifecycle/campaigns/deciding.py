"""What the ratings of an item make of it: what it waits for, and in the end a verdict or a preference."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.campaigns import CampaignSpec, Form
from service.domain.judging import Vote, VoteState
from service.domain.preferences import Choice
from service.domain.ratings import (
    Given,
    PairOpinion,
    PanelRating,
    Purpose,
    Rules,
    Standing,
    pair_standing,
    panel_standing,
)
from service.domain.tasks import GraderSpec
from service.domain.verdicts import ENDED_VERDICTS, Verdict, VerdictState
from service.graders.human_panel.grader import METHOD, VERSION
from service.store import gradings, runs, votes
from service.store.campaigns import assignments, campaigns, items, preferences, raters
from service.store.database import Tx
from service.store.gradings import Occasion
from service.store.rows import Json
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow
from service.store.votes import NewVote

RULE = "rule"
"""In place of a combination: one of the two delivered nothing, and nobody was asked."""
NO_OUTPUT = "no_output"


@dataclass(frozen=True, slots=True)
class Rated:
    assignment: AssignmentRow
    rater: RaterRow


def label_of(spec: CampaignSpec, rating: Json) -> bool | Choice:
    """Return what a stored rating stands for: acceptance, or one choice."""
    if spec.form is Form.HUMAN_PANEL:
        return PanelRating.model_validate(rating).accept
    return PairOpinion.model_validate(rating).choice(spec.combination)


def standing_of(spec: CampaignSpec, item: ItemRow, rated: Sequence[AssignmentRow]) -> Standing:
    """Return where the item stands by its ratings, in the order in which they came."""
    given = [Given(a.purpose, label_of(spec, a.rating)) for a in rated if a.rating is not None]
    rules = Rules(spec.ratings_per_item, spec.second_pass, item.audited)
    return (panel_standing if spec.form is Form.HUMAN_PANEL else pair_standing)(given, rules)


async def settle(tx: Tx, campaign: CampaignRow, item: ItemRow) -> None:
    """Write what the item's ratings make of it. The caller holds the campaign's lock.

    A verdict stays: later ratings are audits, or came late.
    """
    rated = await assignments.submitted_of_item(tx, item.id)
    standing = standing_of(campaign.spec, item, rated)
    people = {r.id: r for r in await raters.of_campaign(tx, campaign.id)}
    grading_id, verdict = item.grading_id, None
    if standing.verdict is not None and item.verdict is None:
        mine = [Rated(a, people[a.rater_id]) for a in rated]
        if campaign.form is Form.HUMAN_PANEL:
            verdict = {"accept": standing.verdict is True}
            grading_id = await _grade(tx, campaign, item, verdict["accept"], mine)
        else:
            verdict = {"choice": str(standing.verdict)}
            choices = [
                str(label_of(campaign.spec, a.rating)) for a in rated if a.rating and a.purpose is Purpose.RATING
            ]
            worth = Choice(standing.verdict).worth
            await preferences.put(tx, item, worth, choices, campaign.spec.combination)
    await items.settle(tx, item, standing, verdict, grading_id)
    await campaigns.touch(tx, campaign.id)


async def settle_by_rule(tx: Tx, campaign: CampaignRow) -> None:
    """Decide what nobody needs to be asked: nothing delivered is a rejection, and loses against anything."""
    found = await items.deliveries(tx, campaign.id)
    for item in await items.all_of(tx, campaign.id):
        if item.gold is not None or item.verdict is not None:
            continue
        first = found[item.run_id].files
        second = found[item.other_run_id].files if item.other_run_id else 1
        if campaign.form is Form.HUMAN_PANEL and not first:
            grading_id = await _grade(tx, campaign, item, False, [], NO_OUTPUT)
            verdict: Json = {"accept": False, "rule": NO_OUTPUT}
            await items.settle(tx, item, Standing(None), verdict, grading_id)
        elif campaign.form is Form.PAIRWISE and not (first and second):
            choice = Choice.SAME if first == second == 0 else Choice.FIRST if first else Choice.SECOND
            await preferences.put(tx, item, choice.worth, [], RULE)
            await items.settle(tx, item, Standing(None), {"choice": str(choice), "rule": NO_OUTPUT}, None)


async def _grade(
    tx: Tx, campaign: CampaignRow, item: ItemRow, accept: bool, rated: Sequence[Rated], rule: str | None = None
) -> str:
    """End the run's grading of the method with the panel's verdict; return its id.

    One that waits for people is taken, and counts as its plan says; else one is made that stands beside the others.
    """
    run = await runs.load(tx, item.run_id)
    waiting = [
        g for g in await gradings.list_for_run(tx, run.id) if g.method == METHOD and g.state not in ENDED_VERDICTS
    ]
    if waiting:
        grading_id = waiting[-1].id
    else:
        spec = GraderSpec(method=METHOD, settings={"campaign": campaign.id})
        why = Occasion(f"{campaign.id}@1")
        versions = {METHOD: VERSION}
        made = await gradings.enqueue(
            tx, run, [spec], primary=False, versions=versions, queues={METHOD: "people"}, occasion=why
        )
        grading_id = made[0].id
    await votes.put(tx, [_vote(grading_id, campaign, r) for r in rated])
    verdict = Verdict(VerdictState.GRADED, float(accept), 1.0, detail=_detail(campaign, rated, rule))
    await gradings.finish(tx, grading_id, verdict)
    return grading_id


def _vote(grading_id: str, campaign: CampaignRow, rated: Rated) -> NewVote:
    a, rating = rated.assignment, PanelRating.model_validate(rated.assignment.rating)
    content = {**rating.model_dump(mode="json"), "accept": rating.accept, "purpose": str(a.purpose)}
    vote = Vote(
        judge=f"rater:{rated.rater.pseudonym}",
        item="",
        n=1,
        state=VoteState.VALID,
        content=content,
        template=f"{campaign.name}@{a.instruction_version}",
        template_sha256=a.instruction_sha256,
        took_s=a.wall_s,
    )
    return NewVote(grading_id, campaign.project_id, vote)


def _detail(campaign: CampaignRow, rated: Sequence[Rated], rule: str | None) -> Json:
    given = [PanelRating.model_validate(r.assignment.rating) for r in rated]
    counts = Counter(g.rating for g in given)
    tags = Counter(str(tag) for g in given for tag in g.tags)
    detail: dict[str, Any] = {
        "campaign": campaign.id,
        "ratings": {str(n): counts[n] for n in (1, 2, 3)},
        "mode": _mode(counts),
        "tags": dict(tags),
        "active_s": sum(r.assignment.active_s for r in rated),
        "wall_s": sum(r.assignment.wall_s for r in rated),
    }
    return detail | ({"rule": rule} if rule else {})


def _mode(counts: Counter[int]) -> int | None:
    """Return the rating that was given most often; null where two were."""
    first = counts.most_common(2)
    if not first or (len(first) > 1 and first[0][1] == first[1][1]):
        return None
    return first[0][0]
