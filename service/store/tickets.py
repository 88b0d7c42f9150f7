"""One-time tickets for browsers elsewhere (NEEDS D6): one GET of one path, within a minute. Only hashes are stored."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update

from service.store.database import Tx
from service.store.rows import TokenRow
from service.store.tables import tokens
from service.store.tables_feeds import tickets
from service.store.tokens import valid

LIFE = timedelta(seconds=60)
_MAX_SECRET = 64


@dataclass(frozen=True, slots=True)
class Used:
    """A ticket that was just used up."""

    token: TokenRow
    """Of whoever made it; still good."""
    origin: str | None
    made_at: datetime


async def mint(tx: Tx, token: TokenRow, path: str, origin: str | None) -> tuple[str, datetime]:
    """Make a ticket for ``path`` (decoded, without a query); return its secret and when it ends. Removes old ones."""
    now = func.clock_timestamp()
    await tx.execute(delete(tickets).where(tickets.c.expires_at < now))
    secret = f"tkt_{secrets.token_urlsafe(32)}"
    values = {"hash": _hash(secret), "project_id": token.project_id, "token_id": token.id, "path": path}
    query = tickets.insert().values(**values, origin=origin, expires_at=now + LIFE).returning(tickets.c.expires_at)
    return secret, (await tx.execute(query)).scalar_one()


async def use(tx: Tx, secret: str, path: str) -> Used | None:
    """Use a ticket up; null if it is unknown, used, over, for another path, or its token has ended."""
    good = (tickets.c.hash == _hash(secret[:_MAX_SECRET]), tickets.c.path == path, tickets.c.used_at.is_(None))
    query = update(tickets).where(*good, tickets.c.expires_at > func.clock_timestamp())
    query = query.values(used_at=func.clock_timestamp()).returning(
        tickets.c.token_id, tickets.c.origin, tickets.c.created_at
    )
    ticket = (await tx.execute(query)).mappings().one_or_none()
    if ticket is None:
        return None
    row = (await tx.execute(select(tokens).where(tokens.c.id == ticket["token_id"], valid()))).mappings().one_or_none()
    return None if row is None else Used(TokenRow.of(row), ticket["origin"], ticket["created_at"])


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
