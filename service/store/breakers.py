"""Breakers, shared by all gateways and the queue. A way to a model is (provider, model, credential); times are the
database's."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.breakers import BreakerState
from service.store.database import Tx
from service.store.notifications import BREAKERS
from service.store.phases import notify
from service.store.rows_models import BreakerRow, ModelRow
from service.store.tables_models import breakers, models

# A model's breaker is that of its present credential.
UNREACHABLE = """(r.model_id IS NOT NULL AND r.replay_of IS NULL AND EXISTS (
    SELECT 1 FROM breakers b JOIN models m ON m.id = b.model_id
    WHERE b.model_id = r.model_id AND b.state <> 'closed' AND b.credential_id = coalesce(m.credential_id, '')))"""
"""Of a run `r`: a way to its model is not open to it now; a replay asks nobody."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a model: what fails and recovers together."""

    provider: str
    model_id: str
    credential_id: str
    """Empty: the deployment's own key, or none."""
    project_id: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.provider, self.model_id, self.credential_id


def way_of(row: BreakerRow) -> Way:
    return Way(row.provider, row.model_id, row.credential_id, row.project_id)


async def all_of(tx: Tx, project_id: str | None = None) -> list[BreakerRow]:
    """Return the breakers of a project, or of all, in a stable order."""
    query = select(breakers).order_by(breakers.c.provider, breakers.c.model_id, breakers.c.credential_id)
    if project_id is not None:
        query = query.where(breakers.c.project_id == project_id)
    return [BreakerRow.of(row) for row in (await tx.execute(query)).mappings()]


async def with_models(tx: Tx, project_id: str) -> list[tuple[ModelRow, BreakerRow]]:
    """Return the project's models with the breaker of their present credential, by name; at most 1 000."""
    same = (breakers.c.model_id == models.c.id, breakers.c.credential_id == func.coalesce(models.c.credential_id, ""))
    query = select(models, *(c.label(f"b_{c.name}") for c in breakers.c)).join(breakers, and_(*same))
    query = query.where(models.c.project_id == project_id).order_by(models.c.name).limit(1000)
    found: list[tuple[ModelRow, BreakerRow]] = []
    for row in (await tx.execute(query)).mappings():
        values: Any = {c.name: row[f"b_{c.name}"] for c in breakers.c}
        found.append((ModelRow.of(row), BreakerRow.of(values)))
    return found


async def get(tx: Tx, way: Way) -> BreakerRow | None:
    row = (await tx.execute(select(breakers).where(*_is(way)))).mappings().one_or_none()
    return None if row is None else BreakerRow.of(row)


async def open(tx: Tx, way: Way, reason: str, probe_in_s: float) -> BreakerRow | None:
    """Open a closed one; null if it is not closed, or is kept as it is by hand."""
    row = await _locked(tx, way)
    if row.manual or row.state is not BreakerState.CLOSED:
        return None
    opened = {"opened_at": func.clock_timestamp(), "next_probe_at": _in(probe_in_s)}
    return await _write(tx, way, state=BreakerState.OPEN, reason=reason[:500], failures=1, **opened)


async def take_probe(tx: Tx, way: Way, lease_s: float) -> BreakerRow | None:
    """Take the one probe that is due; null if none is. Somebody else may after ``lease_s`` seconds without a word."""
    due = or_(breakers.c.next_probe_at.is_(None), breakers.c.next_probe_at <= func.clock_timestamp())
    ready = (breakers.c.state != BreakerState.CLOSED, breakers.c.manual.is_(False), due)
    query = breakers.update().where(*_is(way), *ready)
    return await _say(tx, query.values(state=BreakerState.HALF_OPEN, next_probe_at=_in(lease_s), **_now()))


async def probe_failed(tx: Tx, way: Way, reason: str, probe_in_s: float) -> BreakerRow | None:
    """Leave it open until the next probe; null if somebody has decided otherwise meanwhile."""
    failed = {"failures": breakers.c.failures + 1, "next_probe_at": _in(probe_in_s), "reason": reason[:500]}
    query = breakers.update().where(*_is(way), *_on_trial())
    return await _say(tx, query.values(state=BreakerState.OPEN, **failed, **_now()))


async def probe_answered(tx: Tx, way: Way) -> BreakerRow | None:
    """Close it; null if somebody has decided otherwise meanwhile."""
    closed = {"failures": 0, "next_probe_at": None, "reason": None}
    query = breakers.update().where(*_is(way), *_on_trial())
    return await _say(tx, query.values(state=BreakerState.CLOSED, **closed, **_now()))


async def set_by_hand(tx: Tx, way: Way, state: BreakerState, reason: str) -> BreakerRow:
    """Open it until somebody closes it, or close it; then it goes on by itself."""
    row = await _locked(tx, way)
    if state is BreakerState.CLOSED:
        closed = {"manual": False, "failures": 0, "next_probe_at": None, "reason": reason or None}
        return await _write(tx, way, state=state, **closed)
    since = row.opened_at if row.state is not BreakerState.CLOSED else func.clock_timestamp()
    opened = {"manual": True, "next_probe_at": None, "opened_at": since, "reason": reason or None}
    return await _write(tx, way, state=BreakerState.OPEN, **opened)


async def say_limit(tx: Tx, way: Way, concurrency: int) -> None:
    """Write the present adaptive limit, for readers."""
    query = insert(breakers).values(**_key(way), state=BreakerState.CLOSED, concurrency=concurrency)
    changed = {"concurrency": concurrency}
    await tx.execute(
        query.on_conflict_do_update(index_elements=["provider", "model_id", "credential_id"], set_=changed)
    )


async def _locked(tx: Tx, way: Way) -> BreakerRow:
    """Lock the way's row, which is made closed where there was none."""
    query = insert(breakers).values(**_key(way), state=BreakerState.CLOSED).on_conflict_do_nothing()
    await tx.execute(query)
    row = (await tx.execute(select(breakers).where(*_is(way)).with_for_update())).mappings().one()
    return BreakerRow.of(row)


async def _write(tx: Tx, way: Way, **columns: Any) -> BreakerRow:
    row = await _say(tx, breakers.update().where(*_is(way)).values(**columns, **_now()))
    assert row is not None
    return row


async def _say(tx: Tx, query: Any) -> BreakerRow | None:
    row = (await tx.execute(query.returning(breakers))).mappings().one_or_none()
    if row is None:
        return None
    await notify(tx, BREAKERS, row["model_id"])
    return BreakerRow.of(row)


def _on_trial() -> tuple[ColumnElement[bool], ...]:
    return breakers.c.state == BreakerState.HALF_OPEN, breakers.c.manual.is_(False)


def _now() -> dict[str, Any]:
    return {"updated_at": func.clock_timestamp()}


def _in(seconds: float) -> ColumnElement[Any]:
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _key(way: Way) -> dict[str, str]:
    return {
        "provider": way.provider,
        "model_id": way.model_id,
        "credential_id": way.credential_id,
        "project_id": way.project_id,
    }


def _is(way: Way) -> tuple[ColumnElement[bool], ...]:
    return (
        breakers.c.provider == way.provider,
        breakers.c.model_id == way.model_id,
        breakers.c.credential_id == way.credential_id,
    )
