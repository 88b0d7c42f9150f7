"""What keeps queued runs of an evaluation in the queue: holds, limits of how many are live, dollars (NEEDS B8-B10).

Claims read the gates in the statement that finds their candidates, and count what they take themselves; whoever claims from
an evaluation with limits does so alone, so that what others took is counted by then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, text

from service.domain.run_states import Phase
from service.store.database import Tx

Found = Mapping[Any, Any]
"""A row with what it has of its gate."""
BUDGET = "budget"
EVALUATION_SLOTS = "evaluation_slots"
EVALUATION_STOPPED = "evaluation_stopped"
LIVE_PHASES = (Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED, Phase.AWAITING_CONFIRMATION, Phase.COLLECTING)
"""In these a run has its slot."""


def _live(counts: str) -> str:
    return "(" + " + ".join(f"coalesce(({counts} -> 'phase' ->> '{p}')::int, 0)" for p in LIVE_PHASES) + ")"


# A stop takes what has not begun out of the queue bit by bit, and what lost its host afterwards comes back to it.
_STOPPED = """jsonb_build_object('reason', 'evaluation_stopped', 'detail', 'the evaluation is stopped; resume lets it begin again',
                                      'since', clock_timestamp())"""
# `open`: evaluations that have runs in the queue; all but these have none there (count_run of migration 0007 sees to it).
# `gates`: one row per agent of those that are held, limited or have a budget, also of agents that nothing keeps back.
# A room is what may start more; null: not limited. Rooms may be below 0: a limit was lowered.
GATES = f"""
    open AS MATERIALIZED (
        SELECT e.id, e.project_id, e.concurrency, e.budget, w.hold,
               e.budget ->> 'agents_usd' IS NOT NULL OR w.hold IS NOT NULL
               OR jsonb_path_exists(e.concurrency, '$.** ? (@.type() == "number")')
               OR EXISTS (SELECT FROM evaluation_agents h WHERE h.evaluation_id = e.id AND h.hold IS NOT NULL) AS gated
        FROM evaluations e
        CROSS JOIN LATERAL (SELECT CASE WHEN e.state = 'stopped' THEN {_STOPPED} ELSE e.hold END AS hold) AS w
        WHERE e.state IN ('checking', 'running', 'stopped')
          AND (e.state <> 'stopped' OR coalesce((e.counts -> 'phase' ->> 'queued')::int, 0)
                                       + coalesce((e.counts -> 'phase' ->> 'held')::int, 0) > 0)),
    gates AS MATERIALIZED (
        SELECT g.*, least(g.total_room, g.agent_room, g.model_room, g.provider_room) AS room FROM (
            SELECT e.project_id, e.id AS evaluation_id, a.agent_id, ag.spec ->> 'model' AS model, m.spec ->> 'provider' AS provider,
                   e.hold AS evaluation_hold, a.hold AS agent_hold, e.hold IS NOT NULL OR a.hold IS NOT NULL AS held,
                   (e.budget ->> 'agents_usd')::numeric AS budget_usd,
                   (e.concurrency ->> 'total')::int - sum(l.live) OVER (PARTITION BY e.id) AS total_room,
                   coalesce((e.concurrency -> 'agents' ->> a.agent_id)::int, (e.concurrency -> 'agents' ->> ag.label)::int,
                            (e.concurrency ->> 'per_agent')::int) - l.live AS agent_room,
                   (e.concurrency -> 'models' ->> (ag.spec ->> 'model'))::int
                       - sum(l.live) OVER (PARTITION BY e.id, ag.spec ->> 'model') AS model_room,
                   (e.concurrency -> 'providers' ->> (m.spec ->> 'provider'))::int
                       - sum(l.live) OVER (PARTITION BY e.id, m.spec ->> 'provider') AS provider_room
            FROM open e JOIN evaluation_agents a ON a.evaluation_id = e.id JOIN agents ag ON ag.id = a.agent_id
            LEFT JOIN models m ON m.project_id = e.project_id AND m.name = ag.spec ->> 'model'
            CROSS JOIN LATERAL (SELECT {_live("a.counts")} AS live) AS l
            WHERE e.gated) AS g)"""  # noqa: S608 - constants only
OF_GATE = """g.evaluation_id AS gate_evaluation, g.agent_id AS gate_agent, g.model AS gate_model, g.provider AS gate_provider,
    g.total_room, g.agent_room, g.model_room, g.provider_room, g.budget_usd"""
"""What a candidate has of its gate `g`; null where it has none."""
NO_GATE = """CAST(NULL AS text) AS gate_evaluation, CAST(NULL AS text) AS gate_agent, CAST(NULL AS text) AS gate_model,
    CAST(NULL AS text) AS gate_provider, CAST(NULL AS bigint) AS total_room, CAST(NULL AS bigint) AS agent_room,
    CAST(NULL AS bigint) AS model_room, CAST(NULL AS bigint) AS provider_room, CAST(NULL AS numeric) AS budget_usd"""
_OF = text(f"WITH {GATES} SELECT * FROM gates WHERE evaluation_id = ANY(CAST(:ids AS text[]))")  # noqa: S608 - constants only
# No lock on the rows: only claims make runs live, and whoever else writes counts must not wait for them.
_ALONE = text("""
    SELECT pg_advisory_xact_lock(hashtextextended('workstead.claims.' || id, 0))
    FROM (SELECT id FROM unnest(CAST(:ids AS text[])) AS id ORDER BY id) AS sorted""")


async def of(tx: Tx, evaluation_ids: Sequence[str]) -> dict[tuple[str, str], RowMapping]:
    """Return the gates of these evaluations by (evaluation, agent)."""
    rows = (await tx.execute(_OF, {"ids": [*evaluation_ids]})).mappings()
    return {(row["evaluation_id"], row["agent_id"]): row for row in rows}


async def alone(tx: Tx, evaluation_ids: Sequence[str]) -> None:
    """Wait until nobody else claims from these evaluations; nobody does until the transaction ends."""
    await tx.execute(_ALONE, {"ids": [*evaluation_ids]})


@dataclass(slots=True)
class Dollars:
    """What one budget still lets begin."""

    left: Decimal
    means: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """Agent → what a run of it took so far, on average."""
    otherwise: Decimal = Decimal(0)
    """Of an agent that is not among them."""

    def expected(self, run: Found) -> Decimal:
        """Return what the run may take: its own budget, else the mean of its agent's runs."""
        own: str | None = run["budget"].get("max_usd")
        return Decimal(own) if own is not None else self.means.get(run["agent_id"], self.otherwise)


@dataclass(slots=True)
class Gatekeeper:
    """Counts what one claim takes against the rooms that its candidates came with."""

    taken: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    dollars: dict[str, Dollars] = field(default_factory=dict[str, Dollars])
    """By evaluation or project."""

    def lets(self, candidate: Found) -> bool:
        """Tell whether the candidate may begin beside what was taken."""
        rooms = all(candidate[room] > self.taken.get(key, 0) for key, room in _counted(candidate))
        return rooms and all(self.dollars[b].left > 0 for b in _budgets(candidate) if b in self.dollars)

    def take(self, run: Found) -> None:
        for key, _ in _counted(run):
            self.taken[key] = self.taken.get(key, 0) + 1
        for budget in _budgets(run):
            if budget in self.dollars:
                self.dollars[budget].left -= self.dollars[budget].expected(run)


def _counted(candidate: Found) -> list[tuple[tuple[str, ...], str]]:
    """Return what the candidate counts against: (whose room, name of the room)."""
    evaluation = candidate["gate_evaluation"]
    if evaluation is None:
        return []
    keys = (
        ((evaluation,), "total_room"),
        ((evaluation, "agent", candidate["gate_agent"]), "agent_room"),
        ((evaluation, "model", str(candidate["gate_model"])), "model_room"),
        ((evaluation, "provider", str(candidate["gate_provider"])), "provider_room"),
    )
    return [(key, room) for key, room in keys if candidate[room] is not None]


def _budgets(candidate: Found) -> tuple[str, ...]:
    return tuple(b for b in (candidate["gate_evaluation"], candidate["project_id"]) if b is not None)


def is_gated(candidate: Found) -> bool:
    """Tell whether taking it changes what may be taken beside it."""
    return candidate["gate_evaluation"] is not None or candidate["project_budget"] is not None


def why_full(gate: Found) -> tuple[str, str] | None:
    """Return (reason, in words) where a limit of the evaluation is reached for the gate's agent; null: none is."""
    of = {
        "total_room": "the evaluation has",
        "agent_room": "its agent in this evaluation has",
        "model_room": f"model {gate['model']!r} in this evaluation has",
        "provider_room": f"provider {gate['provider']!r} in this evaluation has",
    }
    full = next((words for room, words in of.items() if gate[room] is not None and gate[room] <= 0), None)
    return None if full is None else (EVALUATION_SLOTS, f"{full} as many runs at work as it may")
