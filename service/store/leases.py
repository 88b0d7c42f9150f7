"""Leases of remote drivers: at most one per run, for its latest attempt, by a secret of which only the hash is kept.

Times are the database's. A lease that is over opens nothing; whoever claims next gets a new one.
"""

import hashlib
import hmac
import secrets
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.agents import Driver
from service.domain.errors import Conflict
from service.domain.run_states import AttemptState
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.notifications import RUNS
from service.store.phases import notify
from service.store.rows import AttemptRow
from service.store.rows_leases import LeaseRow
from service.store.tables import attempts, runs
from service.store.tables_models import leases

TTL = timedelta(seconds=60)
PERSON_TTL = timedelta(hours=12)
"""People send no heartbeats."""
_MAX_SECRET = 64


async def get(tx: Tx, run_id: str) -> LeaseRow | None:
    row = (await tx.execute(select(leases).where(leases.c.run_id == run_id))).mappings().one_or_none()
    return None if row is None else LeaseRow.of(row)


async def claim(tx: Tx, run_id: str, token_id: str, holder: str) -> tuple[LeaseRow, AttemptRow, str]:
    """Give the run to ``holder``; return the lease, the attempt and the secret, which cannot be had again.

    Raises NotFound, Conflict ``run_not_ready`` (no sandbox is up, or the run is over), ``run_claimed``.
    """
    run = await lock_run(tx, run_id)
    attempt = await _running(tx, run)
    if attempt is None:
        raise Conflict("run_not_ready", f"the run is {run['phase']}; it can be driven while it is running")
    secret = f"lease_{secrets.token_urlsafe(24)}"
    values = {
        "attempt": attempt.n, "holder": holder, "token_id": token_id, "secret_hash": _hash(secret),
        "created_at": func.clock_timestamp(), "beat_at": func.clock_timestamp(),
        "expires_at": func.clock_timestamp() + _ttl(run), "finished_at": None, "finish": None,
    }  # fmt: skip
    query = insert(leases).values(run_id=run_id, project_id=run["project_id"], **values)
    query = query.on_conflict_do_update(
        index_elements=[leases.c.run_id],
        set_=values,
        where=(leases.c.attempt != attempt.n) | (_over() & leases.c.finished_at.is_(None)),
    ).returning(leases)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        raise Conflict("run_claimed", "another driver holds the run, or has finished it")
    await notify(tx, RUNS, run_id)
    return LeaseRow.of(row), attempt, secret


async def hold(tx: Tx, run_id: str, secret: str) -> tuple[LeaseRow, AttemptRow]:
    """Check the secret and prolong the lease; the run's row stays locked. Every action of a driver begins so.

    Raises NotFound, Conflict ``lease_lost`` (wrong or expired, another attempt, a run that is over or finished).
    """
    run = await lock_run(tx, run_id)
    attempt, found = await _running(tx, run), await get(tx, run_id)
    stored = b"" if found is None else found.secret_hash
    right = hmac.compare_digest(stored, _hash(secret[:_MAX_SECRET]))
    if found is None or attempt is None or not right or found.attempt != attempt.n or found.finished_at is not None:
        raise Conflict("lease_lost", "the lease is not (any more) yours: claim the run again while it is running")
    query = leases.update().where(leases.c.run_id == run_id, ~_over())
    values = {"beat_at": func.clock_timestamp(), "expires_at": func.clock_timestamp() + _ttl(run)}
    row = (await tx.execute(query.values(values).returning(leases))).mappings().one_or_none()
    if row is None:
        raise Conflict("lease_lost", "the lease ran out: claim the run again")
    return LeaseRow.of(row), attempt


async def standing(tx: Tx, run_id: str) -> LeaseRow | None:
    """Return the lease that is good just now for the run's latest attempt; null if nobody holds it."""
    latest = (attempts.c.run_id == leases.c.run_id, attempts.c.n == leases.c.attempt)
    query = select(leases).join(runs, runs.c.id == leases.c.run_id).join(attempts, and_(*latest))
    good = (leases.c.attempt == runs.c.attempt, leases.c.finished_at.is_(None), ~_over())
    query = query.where(leases.c.run_id == run_id, attempts.c.state == AttemptState.RUNNING, *good)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else LeaseRow.of(row)


async def keep(tx: Tx, lease: LeaseRow) -> bool:
    """Prolong just this lease; False when it is not the standing one. The caller holds the run's lock."""
    found = await standing(tx, lease.run_id)
    if found is None or found.created_at != lease.created_at:
        return False
    lasting = lease.expires_at - (lease.beat_at or lease.created_at)
    values = {"beat_at": func.clock_timestamp(), "expires_at": func.clock_timestamp() + lasting}
    await tx.execute(leases.update().where(leases.c.run_id == lease.run_id).values(values))
    return True


async def finish(tx: Tx, run_id: str, ending: dict[str, Any]) -> None:
    """Note the driver's last word, once; the worker ends the attempt. After :func:`hold`, in its transaction."""
    values = {"finished_at": func.clock_timestamp(), "finish": ending}
    await tx.execute(leases.update().where(leases.c.run_id == run_id).values(values))
    await notify(tx, RUNS, run_id)


async def release(tx: Tx, run_id: str) -> None:
    """Give the run back for another driver. After :func:`hold`, in its transaction."""
    await tx.execute(leases.delete().where(leases.c.run_id == run_id))
    await notify(tx, RUNS, run_id)


async def expire(tx: Tx, run_id: str, attempt: int) -> LeaseRow | None:
    """Remove the attempt's lease if it is over and return it. The caller holds the run's lock."""
    over = (leases.c.run_id == run_id, leases.c.attempt == attempt, leases.c.finished_at.is_(None), _over())
    row = (await tx.execute(leases.delete().where(*over).returning(leases))).mappings().one_or_none()
    return None if row is None else LeaseRow.of(row)


async def _running(tx: Tx, run: RowMapping) -> AttemptRow | None:
    running = (attempts.c.n == run["attempt"], attempts.c.state == AttemptState.RUNNING)
    query = select(attempts).where(attempts.c.run_id == run["id"], *running)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else AttemptRow.of(row)


def _ttl(run: RowMapping) -> timedelta:
    return PERSON_TTL if run["driver"] == Driver.PERSON else TTL


def _over() -> ColumnElement[bool]:
    return leases.c.expires_at <= func.clock_timestamp()


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
