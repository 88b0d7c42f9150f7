"""Which queued runs a host takes next: priority, then fair share between projects, then age (CONTRACTS 1).

Between projects with equally many live runs the one that was served least recently is next: with more projects than
slots, age alone would let the oldest queue have every slot that it frees.

A run that does not fit is passed by smaller ones until it has waited for a minute; then one host keeps its room for it.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import RowMapping, func, select, text

from service.domain.events import EventType
from service.domain.placement import Capacity, Need, Share, reserving_host
from service.domain.run_states import AttemptState, Phase
from service.store import capacity
from service.store.breakers import UNREACHABLE
from service.store.database import Tx
from service.store.evaluations import budgets, gates
from service.store.evaluations.gates import GATES, NO_GATE, OF_GATE, Gatekeeper
from service.store.phases import append_own, change_phase
from service.store.rows import AttemptRow, HostRow
from service.store.tables import attempts, fence_sequence, hosts, runs

RESERVE_AFTER_S = 60.0
"""In the queue without room anywhere: then one host takes nothing that comes after it."""
_MARGIN = 20
_SPARE = 4
"""The margin where nobody else claims: what somebody has just stopped, or given another priority."""
_ROUNDS = 4
LIVE = "('provisioning', 'running', 'paused', 'awaiting_confirmation', 'collecting')"

# Of `c` (a project's candidate with its `place`), `p` (projects) and `live`.
TURN = "c.priority DESC, coalesce(live.n, 0) + c.place, p.served_at NULLS FIRST, c.queued_at, c.id"

# Whoever claims from a project with a limit does so alone: what others claimed is then committed and counted.
_ALONE = text("SELECT id FROM projects WHERE id = ANY(CAST(:ids AS text[])) ORDER BY id FOR NO KEY UPDATE")
# A project's n-th candidate competes as if the project's live attempts and its n-1 better candidates were running,
# so one statement gives the same order as claiming one by one. `wanted` bounds the scan per project and per evaluation;
# where something keeps an evaluation back, `free` does per agent: nobody else claims from it, and what one agent may not
# take hides nobody's runs behind it.
_TAKES = f"""r.project_id = p.id AND r.phase = 'queued' AND r.stop_requested_at IS NULL AND NOT {UNREACHABLE}
          AND r.environment = ANY(CAST(:environments AS text[]))
          AND (r.kit IS NULL OR r.kit = ANY(CAST(:environments AS text[])))
          AND coalesce(r.runtime, CASE WHEN p.untrusted THEN :safe_default ELSE :any_default END)
              = ANY(CASE WHEN p.untrusted THEN CAST(:safe AS text[]) ELSE CAST(:runtimes AS text[]) END)"""
_ORDER = "r.priority DESC, r.queued_at, r.id"
_COLUMNS = "r.id, r.priority, r.queued_at, r.environment, r.kit, r.runtime, r.limits, r.agent_id, r.budget"
_CANDIDATES = text(f"""
    WITH live AS (SELECT project_id, count(*) AS n FROM runs WHERE phase IN {LIVE} AND phase <> 'done' GROUP BY 1), {GATES}
    SELECT c.*, p.id AS project_id, p.untrusted, p.max_runs, p.budget ->> 'agents_usd' AS project_budget,
           coalesce(live.n, 0) AS live, extract(epoch FROM clock_timestamp() - c.queued_at) AS waited_s
    FROM projects p LEFT JOIN live ON live.project_id = p.id
    CROSS JOIN LATERAL (
        SELECT q.*, row_number() OVER (ORDER BY q.priority DESC, q.queued_at, q.id) AS place FROM (
            (SELECT {_COLUMNS}, {NO_GATE} FROM runs r WHERE r.evaluation_id IS NULL AND {_TAKES}
             ORDER BY {_ORDER} LIMIT :wanted)
            UNION ALL
            SELECT s.*, {NO_GATE} FROM open e CROSS JOIN LATERAL (
                SELECT {_COLUMNS} FROM runs r WHERE r.evaluation_id = e.id AND {_TAKES}
                ORDER BY {_ORDER} LIMIT :wanted) AS s
            WHERE e.project_id = p.id AND NOT e.gated
            UNION ALL
            SELECT s.*, {OF_GATE} FROM gates g CROSS JOIN LATERAL (
                SELECT {_COLUMNS} FROM runs r WHERE r.evaluation_id = g.evaluation_id AND r.agent_id = g.agent_id AND {_TAKES}
                ORDER BY {_ORDER} LIMIT greatest(0, least(g.room, CAST(:free AS bigint)))) AS s
            WHERE g.project_id = p.id AND NOT g.held) AS q) AS c
    ORDER BY {TURN}""")  # noqa: S608 - constants only
# What another claimer is writing just now is as good: nobody waits for it.
_SERVED = text("""
    UPDATE projects SET served_at = clock_timestamp() WHERE id IN (
        SELECT id FROM projects WHERE id = ANY(CAST(:ids AS text[])) FOR NO KEY UPDATE SKIP LOCKED)""")
_LOCK = text("""
    SELECT r.*, p.untrusted FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.id = ANY(CAST(:ids AS text[])) AND r.phase = 'queued' AND r.stop_requested_at IS NULL
    ORDER BY array_position(CAST(:ids AS text[]), r.id) LIMIT :slots FOR UPDATE OF r SKIP LOCKED""")


async def claim(
    tx: Tx, host: HostRow, free_slots: int, *, reserve_after_s: float = RESERVE_AFTER_S
) -> list[AttemptRow]:
    """Take at most ``free_slots`` queued runs whose images and runtime the host offers and that it has room for.

    Each gets a further attempt with a new fence and enters phase ``provisioning``. An untrusted project's runs go only
    to ``host.untrusted_runtimes``; a project never has more live runs than its ``max_runs``. Empty when the host is not
    ``up``, is cordoned, has reached its ``slots_limit``, or another process has its epoch.
    """
    room = await _may_claim(tx, host) if free_slots > 0 else None
    if room is None:
        return []
    if room.slots_limit is not None:
        free_slots = min(free_slots, room.slots_limit - room.running)
    return await _Taking(tx, host, room, reserve_after_s).take(free_slots)


async def _may_claim(tx: Tx, host: HostRow) -> Capacity | None:
    """Return the host's room, whose row stays as it is until the claim commits; null if it may not take anything."""
    query = select(hosts.c.epoch).where(hosts.c.id == host.id).with_for_update(read=True)
    epoch = (await tx.execute(query)).scalar_one_or_none()
    room = await capacity.of_host(tx, host.id)
    return room if room is not None and room.takes_runs and epoch == host.epoch else None


@dataclass(slots=True)
class _Taking:
    """One claim of one host: ``room`` shrinks with every run that it takes."""

    tx: Tx
    host: HostRow
    room: Capacity
    reserve_after_s: float
    alone: set[str] = field(default_factory=set[str])
    """Projects and evaluations with a limit that nobody else claims from just now."""
    keeper: Gatekeeper = field(default_factory=Gatekeeper)
    rivals: set[str] = field(default_factory=set[str])
    """Projects that have candidates."""
    served: set[str] = field(default_factory=set[str])

    async def take(self, free: int) -> list[AttemptRow]:
        """Take the best; where other hosts hold them, look further down the queue."""
        taken: list[AttemptRow] = []
        wanted = free + _MARGIN
        for _ in range(_ROUNDS):
            if len(taken) >= free:
                break
            found = await self._counted(wanted)
            taken += await self._take_from(found, free - len(taken))
            if len(found) < wanted:
                break
            wanted *= 4
        if self.served and len(self.rivals) > 1:
            await self.tx.execute(_SERVED, {"ids": [*self.served]})
        return taken

    async def _counted(self, wanted: int) -> list[RowMapping]:
        """Return the candidates; those of projects and evaluations with a limit after everybody else's claims were counted."""
        found = await self._candidates(wanted)
        limited = {c["project_id"] for c in found if c["max_runs"] is not None or c["project_budget"] is not None}
        gated = {c["gate_evaluation"] for c in found if c["gate_evaluation"] is not None}
        if limited - self.alone:
            await self.tx.execute(_ALONE, {"ids": [*limited - self.alone]})
        if gated - self.alone:
            await gates.alone(self.tx, [*gated - self.alone])
        if (limited | gated) - self.alone:
            self.alone |= limited | gated
            found = await self._candidates(wanted)
            await budgets.fill(self.tx, self.keeper, found)
        found = [c for c in found if c["gate_evaluation"] is None or c["gate_evaluation"] in self.alone]
        self.rivals |= {c["project_id"] for c in found}
        return found

    async def _candidates(self, wanted: int) -> list[RowMapping]:
        safe = self.host.untrusted_runtimes
        offer = {
            "environments": list(self.host.environments),
            "runtimes": list(self.host.runtimes),
            "safe": list(safe),
            "any_default": next(iter(self.host.runtimes), None),
            "safe_default": next(iter(safe), None),
            "wanted": wanted,
            "free": wanted - _MARGIN + _SPARE,
        }
        return [*(await self.tx.execute(_CANDIDATES, offer)).mappings()]

    async def _take_from(self, found: list[RowMapping], free: int) -> list[AttemptRow]:
        """Lock and take in order: all in one statement where any of them would fit together, else one by one."""
        taken: list[AttemptRow] = []
        live = {c["project_id"]: int(c["live"]) for c in found}
        while len(taken) < free and found:
            fitting = await self._fitting(found, live)
            together = self._fit_together(fitting, free)
            slots = free if together else 1
            locked = [*(await self.tx.execute(_LOCK, _ids(fitting, slots))).mappings()]
            of = {c["id"]: c for c in fitting}
            for run in locked:
                taken.append(await self._make_attempt(run))
                live[run["project_id"]] += 1
                self.keeper.take(of[run["id"]])
                self.served.add(run["project_id"])
            if together or not locked:
                break
            ids = {run["id"] for run in locked}
            found = [c for c in found if c["id"] not in ids]
        return taken

    async def _fitting(self, found: list[RowMapping], live: dict[str, int]) -> list[RowMapping]:
        fitting: list[RowMapping] = []
        for candidate in found:
            need = capacity.need_of(candidate)
            if Share(live[candidate["project_id"]], candidate["max_runs"]).is_full or not self.keeper.lets(candidate):
                continue
            if self.room.has_room(need):
                fitting.append(candidate)
            elif candidate["waited_s"] > self.reserve_after_s and await self._reserves(need):
                break
        return fitting

    async def _reserves(self, need: Need) -> bool:
        return reserving_host(await capacity.of_all(self.tx), need) == self.host.id

    def _fit_together(self, fitting: list[RowMapping], free: int) -> bool:
        """Tell whether every choice of ``free`` of them fits: then nothing has to be counted while they are taken."""
        if any(c["max_runs"] is not None or gates.is_gated(c) for c in fitting):
            return False
        needs = [capacity.need_of(c) for c in fitting]
        memory = sum(sorted((n.memory_bytes for n in needs), reverse=True)[:free])
        disk = sum(sorted((n.disk_bytes for n in needs), reverse=True)[:free])
        return self.room.has_room(Need("", memory, disk))

    async def _make_attempt(self, run: RowMapping) -> AttemptRow:
        need = capacity.need_of(run)
        self.room = replace(
            self.room,
            memory_promised_bytes=self.room.memory_promised_bytes + need.memory_bytes,
            disk_promised_bytes=self.room.disk_promised_bytes + need.disk_bytes,
        )
        return await _make_attempt(self.tx, self.host, run)


def _ids(fitting: list[RowMapping], slots: int) -> dict[str, Any]:
    return {"ids": [c["id"] for c in fitting], "slots": slots}


async def _make_attempt(tx: Tx, host: HostRow, run: RowMapping) -> AttemptRow:
    offered = host.untrusted_runtimes if run["untrusted"] else host.runtimes
    values = {
        "run_id": run["id"],
        "n": run["attempt"] + 1,
        "state": AttemptState.CLAIMED,
        "fence": fence_sequence.next_value(),
        "host_id": host.id,
        "runtime": run["runtime"] or offered[0],
    }
    attempt = (await tx.execute(attempts.insert().values(values).returning(attempts))).mappings().one()
    waited = func.greatest(0, func.extract("epoch", func.clock_timestamp() - runs.c.queued_at))
    cleared = dict.fromkeys(
        ("started_at", "deadline_at", "ended_at", "ended_because", "provision_s", "wall_s", "doing", "service_cost_usd")
    )
    changed = await change_phase(
        tx, run, Phase.PROVISIONING, attempt=attempt["n"], queue_s=waited, service_calls=0, **cleared
    )
    payload = {"attempt": attempt["n"], "host": host.id, "sandbox": None, "runtime": values["runtime"]}
    await append_own(tx, changed, EventType.ATTEMPT_STARTED, payload)
    return AttemptRow.of(attempt)
