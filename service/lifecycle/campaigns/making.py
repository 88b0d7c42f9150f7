"""Makes a campaign: its items are drawn once, by the seed, and stay what they are."""

from collections.abc import Sequence
from itertools import combinations

from service.domain.campaigns import MAX_ITEMS, CampaignSpec, Form, Gold, Pairs
from service.domain.errors import Invalid
from service.domain.strata import place, spread
from service.domain.tasks import TaskManifest
from service.store import runs, tasks
from service.store.campaigns import campaigns, items
from service.store.campaigns.items import NewItem
from service.store.campaigns.selecting import Candidate, candidates
from service.store.database import Tx
from service.store.rows import Json
from service.store.rows_campaigns import CampaignRow

HUMAN = "human"
"""The human reference among the parties of a pair."""


async def make(tx: Tx, project_id: str, spec: CampaignSpec, author: str) -> CampaignRow:
    """Make a draft with its items. The instruction's bytes must be stored already.

    Raises Invalid ``no_items``, ``too_many_runs``, ``too_many_items``, ``bad_gold``.
    """
    golds = await _golds(tx, project_id, spec)
    drawn, short = await _draw(tx, project_id, spec, {g.run_id for g in golds})
    if not drawn:
        raise Invalid("no_items", "the selection lets no run with a sealed deliverable through")
    campaign = await campaigns.create(tx, project_id, spec, len(drawn), short, author)
    await items.insert_all(tx, project_id, campaign.id, [*drawn, *golds])
    return campaign


async def _draw(tx: Tx, project_id: str, spec: CampaignSpec, golden: set[str]) -> tuple[list[NewItem], list[Json]]:
    chosen = spec.selection
    agents = spec.pairs.agents if spec.pairs else []
    found = await candidates(tx, project_id, chosen, spec.category_facet, agents)
    found = [c for c in found if c.run_id not in golden]
    if spec.pairs is not None:
        referenced = await _with_reference(tx, project_id, spec, found) if spec.pairs.human else set[str]()
        pairs, short = draw_pairs(spec, spec.pairs, found, referenced)
        return _audited(spec, pairs), short
    if chosen.n is not None:
        found = spread(found, chosen.n, chosen.seed, key=lambda c: c.run_id, stratum=lambda c: c.stratum)
    _check_number(len(found))
    return _audited(spec, [_item(c, spec) for c in found]), []


def _item(c: Candidate, spec: CampaignSpec) -> NewItem:
    return NewItem(c.task_id, c.run_id, categories=c.categories, wanted=spec.ratings_per_item)


def draw_pairs(
    spec: CampaignSpec, pairs: Pairs, found: Sequence[Candidate], referenced: set[str]
) -> tuple[list[NewItem], list[Json]]:
    """Return the items of all pairs, and the pairs that have fewer tasks than wanted.

    Each pair's tasks are spread over the strata; where an agent has several runs of a task, one is drawn.
    """
    chosen = spec.selection
    by_agent: dict[str, dict[str, Candidate]] = {agent: {} for agent in pairs.agents}
    for c in sorted(found, key=lambda c: place(chosen.seed, "run", c.run_id)):
        by_agent[c.agent_id].setdefault(c.task_id, c)
    parties = [*combinations(pairs.agents, 2), *((a, HUMAN) for a in pairs.agents if pairs.human)]
    drawn: list[NewItem] = []
    short: list[Json] = []
    for first, second in parties:
        mine, others = by_agent[first], by_agent.get(second, {})
        both = [c for task, c in mine.items() if (task in referenced if second == HUMAN else task in others)]
        seed = place(chosen.seed, first, second)
        taken = spread(both, pairs.per_pair, seed, key=lambda c: c.task_id, stratum=lambda c: c.stratum)
        if len(taken) < pairs.per_pair:
            short.append({"first": first, "second": second, "tasks": len(taken)})
        for c in taken:
            other = others[c.task_id].run_id if second != HUMAN else None
            drawn.append(NewItem(c.task_id, c.run_id, other, c.categories, wanted=spec.ratings_per_item))
    _check_number(len(drawn))
    return drawn, short


async def _with_reference(tx: Tx, project_id: str, spec: CampaignSpec, found: Sequence[Candidate]) -> set[str]:
    """Return the tasks that have a human reference."""
    there: set[str] = set()
    for task_id in sorted({c.task_id for c in found}):
        task = await tasks.get(tx, project_id, task_id)
        if task is not None and reference_of(task.manifest, spec):
            there.add(task_id)
    return there


def reference_of(task: TaskManifest, spec: CampaignSpec) -> list[str]:
    """Return the paths of the human reference among the hidden files, in their order."""
    return [f.path for f in task.hidden if f.path.startswith(spec.reference_prefix)]


def _audited(spec: CampaignSpec, drawn: list[NewItem]) -> list[NewItem]:
    """Mark the share of items that are audited."""
    number = round(spec.audit_share * len(drawn))
    order = sorted(range(len(drawn)), key=lambda i: place(spec.seed, "audit", drawn[i].run_id, drawn[i].other_run_id))
    chosen = set(order[:number])
    return [
        NewItem(d.task_id, d.run_id, d.other_run_id, d.categories, i in chosen, wanted=d.wanted)
        for i, d in enumerate(drawn)
    ]


def _check_number(number: int) -> None:
    if number > MAX_ITEMS:
        raise Invalid("too_many_items", f"a campaign has at most {MAX_ITEMS} items; draw a sample", items=number)


async def _golds(tx: Tx, project_id: str, spec: CampaignSpec) -> list[NewItem]:
    golds = spec.qualification.golds if spec.qualification else []
    return [await _gold(tx, project_id, spec, gold) for gold in golds]


async def _gold(tx: Tx, project_id: str, spec: CampaignSpec, gold: Gold) -> NewItem:
    run = await runs.get(tx, project_id, gold.run_id)
    other = await runs.get(tx, project_id, gold.other_run_id) if gold.other_run_id else None
    missing = run is None or (gold.other_run_id is not None and other is None)
    if missing or any(r is not None and r.deliverable_digest is None for r in (run, other)):
        raise Invalid("bad_gold", f"the project has no sealed deliverable of {gold.run_id} or {gold.other_run_id}")
    assert run is not None
    if other is not None and other.task_id != run.task_id:
        raise Invalid("bad_gold", f"{gold.run_id} and {gold.other_run_id} are of two tasks")
    right = {"accept": gold.accept} if spec.form is Form.HUMAN_PANEL else {"choice": gold.choice}
    return NewItem(run.task_id, run.id, gold.other_run_id, gold=right)
