"""Raters: invitations that work once, and browser sessions limited to one campaign. Only hashes of secrets are kept."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select

from service.domain.campaigns import MAX_RATERS, RaterSpec
from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.rows_campaigns import CampaignRow, RaterRow
from service.store.tables import tokens
from service.store.tables_campaigns import rater_sessions, raters

SESSION_LIFE = timedelta(hours=12)
INVITATION_LIFE = timedelta(days=14)
PREFIX = "wsi_"
"""Of every invitation's code."""
_MAX_SECRET = 64


async def add(tx: Tx, campaign: CampaignRow, specs: Sequence[RaterSpec]) -> list[tuple[RaterRow, str | None]]:
    """Add raters; return each with its invitation's code, which cannot be had again (null: it needs none).

    The caller holds the campaign's lock. Raises Conflict("too_many_raters"), Invalid("unknown_token").
    """
    there = len(await of_campaign(tx, campaign.id))
    if there + len(specs) > MAX_RATERS:
        raise Conflict("too_many_raters", f"a campaign has at most {MAX_RATERS} raters")
    found: list[tuple[RaterRow, str | None]] = []
    for number, spec in enumerate(specs, there + 1):
        await _check_token(tx, campaign.project_id, spec.token_id)
        person = spec.model is None and spec.token_id is None
        code = _new_code() if person else None
        values = {
            "id": new_id("rtr"),
            "project_id": campaign.project_id,
            "campaign_id": campaign.id,
            "name": spec.name,
            "pseudonym": f"R{number}",
            "categories": list(spec.categories),
            "judge": spec.model.model_dump(mode="json") if spec.model else None,
            "token_id": spec.token_id,
            "state": "invited" if person else "active",
            **(_invitation(code) if code else {}),
        }
        row = (await tx.execute(raters.insert().values(values).returning(raters))).mappings().one()
        found.append((RaterRow.of(row), code))
    return found


async def _check_token(tx: Tx, project_id: str, token_id: str | None) -> None:
    if token_id is None:
        return
    mine = (tokens.c.id == token_id, tokens.c.project_id == project_id, tokens.c.kind == "api")
    scopes = (await tx.execute(select(tokens.c.scopes).where(*mine))).scalar_one_or_none()
    if scopes is None or not {"rate", "admin"} & set(scopes):
        raise Invalid("unknown_token", "the project has no such token with the scope rate")


async def of_campaign(tx: Tx, campaign_id: str) -> list[RaterRow]:
    """Return all raters, the removed ones too, in their order. The caller checked the project."""
    query = select(raters).where(raters.c.campaign_id == campaign_id).order_by(raters.c.created_at, raters.c.id)
    return [RaterRow.of(row) for row in (await tx.execute(query)).mappings()]


async def get(tx: Tx, campaign_id: str, rater_id: str) -> RaterRow | None:
    query = select(raters).where(raters.c.id == rater_id, raters.c.campaign_id == campaign_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else RaterRow.of(row)


async def invite(tx: Tx, rater: RaterRow) -> tuple[RaterRow, str]:
    """Give a person another code; the former one and all sessions end. Raises Conflict("no_person", "rater_removed")."""
    if rater.judge is not None or rater.token_id is not None:
        raise Conflict("no_person", "models and programs need no invitation")
    if rater.state == "removed":
        raise Conflict("rater_removed", "the rater was removed: add another one")
    code = _new_code()
    await end_sessions(tx, rater.id)
    query = raters.update().where(raters.c.id == rater.id).values(_invitation(code)).returning(raters)
    return RaterRow.of((await tx.execute(query)).mappings().one()), code


async def exchange(tx: Tx, code: str) -> tuple[RaterRow, str] | None:
    """Turn an invitation into a session; return the rater and its secret. Null: not a code that can (still) be used."""
    now = func.clock_timestamp()
    good = (raters.c.invitation_hash == _hash(code), raters.c.invitation_expires_at > now, raters.c.state != "removed")
    joined = func.coalesce(raters.c.joined_at, now)
    used = {"invitation_hash": None, "invitation_expires_at": None, "state": "active", "joined_at": joined}
    row = (await tx.execute(raters.update().where(*good).values(used).returning(raters))).mappings().one_or_none()
    if row is None:
        return None
    secret = secrets.token_urlsafe(32)
    await tx.execute(rater_sessions.delete().where(rater_sessions.c.expires_at < now))
    values = {"hash": _hash(secret), "rater_id": row["id"], "expires_at": now + SESSION_LIFE}
    await tx.execute(rater_sessions.insert().values(values))
    return RaterRow.of(row), secret


async def of_session(tx: Tx, secret: str) -> RaterRow | None:
    """Return who the session is of; null when it has ended or its rater was removed."""
    query = select(raters).join(rater_sessions, rater_sessions.c.rater_id == raters.c.id)
    good = (rater_sessions.c.hash == _hash(secret), rater_sessions.c.expires_at > func.clock_timestamp())
    row = (await tx.execute(query.where(*good, raters.c.state == "active"))).mappings().one_or_none()
    return None if row is None else RaterRow.of(row)


async def of_token(tx: Tx, token_id: str, campaign_id: str) -> RaterRow | None:
    """Return the rater that a program is in a campaign."""
    mine = (raters.c.token_id == token_id, raters.c.campaign_id == campaign_id, raters.c.state == "active")
    row = (await tx.execute(select(raters).where(*mine).limit(1))).mappings().one_or_none()
    return None if row is None else RaterRow.of(row)


async def close_session(tx: Tx, secret: str) -> None:
    await tx.execute(rater_sessions.delete().where(rater_sessions.c.hash == _hash(secret)))


async def end_sessions(tx: Tx, rater_id: str) -> None:
    await tx.execute(rater_sessions.delete().where(rater_sessions.c.rater_id == rater_id))


async def remove(tx: Tx, rater: RaterRow) -> RaterRow:
    """End a rater's part; ratings stay. Releasing what it holds is the caller's."""
    await end_sessions(tx, rater.id)
    gone = func.coalesce(raters.c.removed_at, func.clock_timestamp())
    values = {"state": "removed", "removed_at": gone, "invitation_hash": None, "invitation_expires_at": None}
    query = raters.update().where(raters.c.id == rater.id).values(values).returning(raters)
    return RaterRow.of((await tx.execute(query)).mappings().one())


async def qualify(tx: Tx, rater_id: str, *, passed: bool) -> None:
    await tx.execute(raters.update().where(raters.c.id == rater_id).values(qualified=passed))


def _new_code() -> str:
    return PREFIX + secrets.token_urlsafe(24)


def _invitation(code: str) -> dict[str, Any]:
    return {"invitation_hash": _hash(code), "invitation_expires_at": func.clock_timestamp() + INVITATION_LIFE}


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret[:_MAX_SECRET].encode(errors="surrogatepass")).digest()
