"""Models among the raters of a pairwise campaign: they take items as people do, and are asked as method ``pairwise`` asks.

Both works are shown without folders and metadata; which one comes first is drawn by item and rater.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from service.domain.errors import Conflict, Forbidden
from service.domain.judging import MOST_ASKS, JudgeSpec
from service.domain.ratings import PairOpinion
from service.domain.tasks import canonical_digest
from service.graders.contract import EvidenceSource, GraderBusy, GraderFault, InvalidVote
from service.graders.judging.panel import Asking
from service.graders.pairwise.asking import SHELF, Pair
from service.graders.pairwise.settings import PairwiseSettings
from service.graders.pairwise.works import Works, blinded, material_of
from service.lifecycle.campaigns import rating
from service.lifecycle.campaigns.making import reference_of
from service.lifecycle.campaigns.rating import Who
from service.lifecycle.evidence import EvidenceOf, reference_evidence
from service.lifecycle.integrity import ReportContext
from service.lifecycle.judge_calls import JudgeCalls, checked
from service.store import runs, tasks
from service.store.campaigns import campaigns, items
from service.store.database import Tx
from service.store.rows import RunRow, TaskRow
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow

NO_RATING = "no answer was a rating"
NOTES = 10_000


@dataclass(frozen=True, slots=True)
class _Subject:
    """A pair as it is shown to a model."""

    campaign: CampaignRow
    item: ItemRow
    task: TaskRow
    first: RunRow
    second: RunRow | None
    """Null: the human reference."""


class ModelRater:
    """Rates what there is for one of the campaign's models."""

    def __init__(self, ctx: ReportContext, calls: JudgeCalls, campaign_id: str, rater: RaterRow) -> None:
        self._ctx, self._calls, self._campaign_id, self._rater = ctx, calls, campaign_id, rater
        self._who = Who(rater.project_id, rater_id=rater.id)
        self._judge = JudgeSpec.model_validate(rater.judge)
        self._settings = PairwiseSettings(judges=[self._judge])
        self.said: Counter[str] = Counter()
        """``rated``, ``skipped``; and why it stopped, where that was not for want of items."""

    async def run(self, told: Callable[[], Awaitable[None]]) -> None:
        """Rate until there is nothing (now), or the model cannot be asked. ``told`` is awaited after each item.

        Raises Unavailable (database away).
        """
        try:
            while (taken := await self._next()) is not None:
                self.said[await self._rate(taken)] += 1
                await told()
        except (GraderBusy, GraderFault, Forbidden, Conflict) as error:
            self.said[error.type] += 1

    async def _next(self) -> AssignmentRow | None:
        async with self._ctx.db.transaction() as tx:
            return await rating.next_assignment(tx, self._who, self._campaign_id)

    async def _rate(self, taken: AssignmentRow) -> str:
        try:
            opinion = await self._opinion(taken)
        except (GraderBusy, GraderFault):
            async with self._ctx.db.transaction() as tx:
                await rating.release(tx, self._who, taken.id)
            raise
        async with self._ctx.db.transaction() as tx:
            if opinion is None:
                await rating.skip(tx, self._who, taken.id, NO_RATING)
                return "skipped"
            body = opinion.seen(swapped=taken.swapped).model_dump(mode="json")
            await rating.submit(tx, self._who, taken.id, body, taken.id)
        return "rated"

    async def _opinion(self, taken: AssignmentRow) -> PairOpinion | None:
        """Return what the model says in the item's own order; null where none of its answers fits."""
        model = await self._calls.model(self._rater.project_id, self._judge)
        asking = await self._asking(taken)
        for nth in range(MOST_ASKS):
            try:
                ask = partial(asking.ask, nth)
                answer = await self._calls.ask(self._rater.project_id, model, self._judge, ask, self._campaign_id)
                said = asking.read(checked(answer))
            except InvalidVote:
                continue
            notes = str(said["reasoning"])[:NOTES]
            return PairOpinion(completion=said["completion"], quality=said["quality"], notes=notes)
        return None

    async def _asking(self, taken: AssignmentRow) -> Asking:
        async with self._ctx.db.reading() as tx:
            subject = await _subject(tx, self._rater.project_id, self._campaign_id, taken)
        seed = canonical_digest([self._campaign_id, subject.item.position, self._rater.pseudonym])
        works = await self._works(subject, seed)
        settings = self._settings.model_copy(update={"combination": subject.campaign.spec.combination})
        pair = Pair(subject.task.manifest, settings, SHELF.prompt(settings), works, seed)
        return pair.asking(self._judge, 1)

    async def _works(self, subject: _Subject, seed: str) -> Works:
        manifest, spec = subject.task.manifest, subject.campaign.spec
        roots = [f"{root}/" for root in manifest.collect]
        first, second = self._deliverable(subject.first), self._second(subject)
        documents = [await first.document(), await second.document()]
        prefixes = [roots, roots if subject.second else [spec.reference_prefix]]
        shown = [blinded(d, p) for d, p in zip(documents, prefixes, strict=True)]
        materials = [
            await material_of(self._settings, seed, source, document)
            for source, document in zip((first, second), shown, strict=True)
        ]
        return Works(materials[0], materials[1], nothing_delivered=False, extracted=True)

    def _second(self, subject: _Subject) -> EvidenceSource:
        if subject.second is not None:
            return self._deliverable(subject.second)
        paths = set(reference_of(subject.task.manifest, subject.campaign.spec))
        files = [f for f in subject.task.manifest.hidden if f.path in paths]
        return reference_evidence(self._ctx, self._rater.project_id, subject.first.id, files)

    def _deliverable(self, run: RunRow) -> EvidenceSource:
        return EvidenceOf(self._ctx, run.project_id, run.id, run.deliverable_digest or "")


async def _subject(tx: Tx, project_id: str, campaign_id: str, taken: AssignmentRow) -> _Subject:
    campaign, item = await campaigns.get(tx, project_id, campaign_id), await items.get(tx, taken.item_id)
    task = await tasks.get(tx, project_id, item.task_id)
    if campaign is None or task is None:
        raise GraderFault("campaign_gone", "the campaign was deleted meanwhile")
    second = await runs.load(tx, item.other_run_id) if item.other_run_id else None
    return _Subject(campaign, item, task, await runs.load(tx, item.run_id), second)
