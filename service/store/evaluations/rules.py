"""What stop rules look at: the first and the last ended runs of each agent that is not held."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import RowMapping, text

from service.domain.evaluations import StopRules
from service.domain.run_states import USER, EndedBecause
from service.domain.stop_rules import EndedRun
from service.store.database import Tx

_BY_PEOPLE = "(" + ", ".join(f"'{cause}'" for cause in sorted(USER)) + ")"
# In phase collecting nobody knows yet what was delivered. What a person ended, or made void, says nothing of the agent. An
# error of the provider's is named in the ledger by its status, also where the agent was told another.
_ENDED = text(f"""
    WITH ended AS (
        SELECT r.agent_id, r.id, r.ended_because, r.deliverable_files, r.wall_s,
               row_number() OVER (PARTITION BY r.agent_id ORDER BY r.ended_at, r.id) AS place,
               row_number() OVER (PARTITION BY r.agent_id ORDER BY r.ended_at DESC, r.id DESC) AS from_end
        FROM evaluation_agents a JOIN runs r ON r.evaluation_id = a.evaluation_id AND r.agent_id = a.agent_id
        WHERE a.evaluation_id = :id AND a.hold IS NULL AND r.phase IN ('grading', 'done')
          AND r.ended_at > coalesce(a.rules_from, '-infinity')
          AND coalesce(r.outcome, '') NOT IN ('cancelled', 'invalidated')
          AND coalesce(r.ended_because, '') NOT IN {_BY_PEOPLE})
    SELECT e.*, (SELECT substring(m.error FROM '^provider_(4[0-9][0-9])$')::int FROM model_requests m
                 WHERE m.run_id = e.id AND m.purpose = 'agent' ORDER BY m.n DESC LIMIT 1) AS last_status
    FROM ended e WHERE e.place <= :first OR e.from_end <= :last ORDER BY e.agent_id, e.place""")  # noqa: S608 - constants only


@dataclass(slots=True)
class Ended:
    """Of one agent, each in the order in which they ended."""

    first: list[EndedRun] = field(default_factory=list[EndedRun])
    last: list[EndedRun] = field(default_factory=list[EndedRun])


async def ended(tx: Tx, evaluation_id: str, rules: StopRules) -> Mapping[str, Ended]:
    """Return, by agent, what ended since its last release: as many as the rules look at, at most."""
    found: dict[str, Ended] = {}
    values = {"id": evaluation_id, "first": rules.first, "last": rules.last}
    for row in (await tx.execute(_ENDED, values)).mappings():
        of_agent = found.setdefault(row["agent_id"], Ended())
        if row["place"] <= rules.first:
            of_agent.first.append(_run(row))
        if row["from_end"] <= rules.last:
            of_agent.last.append(_run(row))
    return found


def _run(row: RowMapping) -> EndedRun:
    cause = None if row["ended_because"] is None else EndedBecause(row["ended_because"])
    return EndedRun(row["id"], cause, row["deliverable_files"], row["wall_s"], row["last_status"])
