"""Bearer tokens and browser sessions: only hashes are stored, a secret is seen once."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from service.domain.ids import new_id
from service.domain.run_states import AttemptState
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import TokenRow
from service.store.tables import attempts, runs, sessions, tokens

SESSION_LIFE = timedelta(hours=12)
TOUCH_INTERVAL = timedelta(minutes=1)
_PREFIXES = {"api": "wst", "run": "wsr"}
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
_SHAPE = re.compile(r"(ws[tr]_[A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}", re.ASCII)
_MAX_SECRET = 64
_USABLE = (AttemptState.CLAIMED, AttemptState.BOUND, AttemptState.RUNNING)
_TIMES = func.concat_ws(" ", tokens.c.expires_at, tokens.c.revoked_at, tokens.c.last_used_at)
LISTING = Listing(
    tokens,
    TokenRow.of,
    sorts_by(created_at=Sort(tokens.c.created_at)),
    {"note": one_of(tokens.c.note)},
    version=func.hashtextextended(_TIMES, 0),
    always=(tokens.c.kind == "api",),
)
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).digest()


async def mint(
    tx: Tx,
    project_id: str,
    scopes: Iterable[str],
    note: str = "",
    expires_at: datetime | None = None,
    *,
    kind: str = "api",
    run_id: str | None = None,
    attempt: int | None = None,
) -> tuple[TokenRow, str]:
    """Make a token (kind ``api`` or ``run``); the secret is returned here and cannot be had again."""
    prefix = f"{_PREFIXES[kind]}_{''.join(secrets.choice(_ALPHABET) for _ in range(8))}"
    secret = f"{prefix}_{secrets.token_urlsafe(32)}"
    values = {
        "id": new_id("tok"),
        "project_id": project_id,
        "kind": kind,
        "prefix": prefix,
        "hash": _hash(secret),
        "scopes": sorted(set(scopes)),
        "note": note,
        "expires_at": expires_at,
        "run_id": run_id,
        "attempt": attempt,
    }
    row = (await tx.execute(tokens.insert().values(values).returning(tokens))).mappings().one()
    return TokenRow.of(row), secret


async def authenticate(tx: Tx, secret: str) -> TokenRow | None:
    """Return the token that ``secret`` is, null for anything else: the same steps whatever is wrong with it.

    A run token is valid while its attempt is the run's latest and has not ended. Reads only: follow up with
    :func:`touch` in a transaction of its own where ``last_used_at`` matters.
    """
    shape = _SHAPE.fullmatch(secret) if len(secret) <= _MAX_SECRET else None
    query = select(tokens).where(tokens.c.prefix == (shape.group(1) if shape else ""), valid())
    row = (await tx.execute(query)).mappings().one_or_none()
    stored = _NOBODY if row is None else bytes(row["hash"])
    same = hmac.compare_digest(stored, _hash(secret[:_MAX_SECRET]))
    return TokenRow.of(row) if row is not None and same else None


async def touch(tx: Tx, token_id: str) -> None:
    """Note that the token was used, at most once a minute."""
    before = func.clock_timestamp() - TOUCH_INTERVAL
    due = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at < before)
    await tx.execute(tokens.update().where(tokens.c.id == token_id, due).values(last_used_at=func.clock_timestamp()))


async def revoke(tx: Tx, project_id: str, token_id: str) -> bool:
    """End a token of the project, and its sessions; False if there is none."""
    mine = and_(tokens.c.id == token_id, tokens.c.project_id == project_id)
    ended = func.coalesce(tokens.c.revoked_at, func.clock_timestamp())
    found = await tx.execute(tokens.update().where(mine).values(revoked_at=ended).returning(tokens.c.id))
    if found.one_or_none() is None:
        return False
    await tx.execute(sessions.delete().where(sessions.c.token_id == token_id))
    return True


async def revoke_run(tx: Tx, run_id: str, attempt: int) -> None:
    """End the run tokens of one attempt."""
    mine = and_(tokens.c.run_id == run_id, tokens.c.attempt == attempt, tokens.c.revoked_at.is_(None))
    await tx.execute(tokens.update().where(mine).values(revoked_at=func.clock_timestamp()))


async def newest_of_run(tx: Tx, run_id: str, attempt: int) -> str | None:
    """Return the sha256 (hex) of the attempt's newest run token that is not revoked."""
    mine = and_(tokens.c.run_id == run_id, tokens.c.attempt == attempt, tokens.c.revoked_at.is_(None))
    query = select(tokens.c.hash).where(mine).order_by(tokens.c.created_at.desc(), tokens.c.id.desc()).limit(1)
    found = (await tx.execute(query)).scalar_one_or_none()
    return None if found is None else bytes(found).hex()


async def open_session(tx: Tx, token_id: str) -> str:
    """Open a browser session of 12 h on a token; return its secret. Removes sessions that ran out."""
    secret = secrets.token_urlsafe(32)
    now = func.clock_timestamp()
    await tx.execute(sessions.delete().where(sessions.c.expires_at < now))
    values = {"hash": _hash(secret), "token_id": token_id, "expires_at": now + SESSION_LIFE}
    await tx.execute(sessions.insert().values(values))
    return secret


async def session_token(tx: Tx, secret: str) -> TokenRow | None:
    """Return the token behind a session; null when either has ended."""
    query = select(tokens).join(sessions, sessions.c.token_id == tokens.c.id)
    mine = (sessions.c.hash == _hash(secret[:_MAX_SECRET]), sessions.c.expires_at > func.clock_timestamp())
    row = (await tx.execute(query.where(*mine, valid()))).mappings().one_or_none()
    return None if row is None else TokenRow.of(row)


async def close_session(tx: Tx, secret: str) -> None:
    await tx.execute(sessions.delete().where(sessions.c.hash == _hash(secret[:_MAX_SECRET])))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def valid() -> ColumnElement[bool]:
    """Return the condition that a row of ``tokens`` opens anything at all."""
    latest = and_(attempts.c.run_id == tokens.c.run_id, attempts.c.n == tokens.c.attempt)
    usable = and_(latest, attempts.c.state.in_(_USABLE), runs.c.id == tokens.c.run_id, runs.c.attempt == attempts.c.n)
    unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.clock_timestamp())
    return and_(tokens.c.revoked_at.is_(None), unexpired, or_(tokens.c.kind == "api", exists().where(usable)))
