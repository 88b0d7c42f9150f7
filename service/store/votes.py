"""Votes: one opinion of one judge each, written once. What was asked is a blob that belongs to the grading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, or_, select

from service.domain.cleaning import clean_json
from service.domain.errors import Invalid
from service.domain.judging import Vote, VoteState
from service.domain.models import TokenUsage
from service.store.blob_refs import add_refs_of_many
from service.store.database import Tx
from service.store.many_rows import arrays_of, insert_of_many
from service.store.paging import MAX_LIMIT
from service.store.request_bodies import OWNER as BODIES
from service.store.rows import Cursor, Slice
from service.store.rows_grading import VoteRow
from service.store.tables import blob_refs, gradings
from service.store.tables_grading import votes
from service.store.tables_models import model_requests

OWNER = "grading"
"""Owner of the blobs of what judges were asked: its id is the grading's."""
_KEY = ("grading_id", "judge", "item", "n")
_SAID = ("state", "cause", "asks", "template", "template_sha256", "rendered_sha256", "took_s")
_COLUMNS = (*_KEY, "project_id", *_SAID, "content", "model", "usage")
_INSERT = insert_of_many(votes, _COLUMNS, tail=f"ON CONFLICT DO NOTHING RETURNING {', '.join(_KEY)}")


@dataclass(frozen=True, slots=True)
class NewVote:
    grading_id: str
    project_id: str
    vote: Vote
    blobs: dict[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes of what it names."""


async def of_grading(tx: Tx, grading_id: str) -> list[Vote]:
    """Return every vote that is recorded. The caller checked the project."""
    rows = (await tx.execute(select(votes).where(votes.c.grading_id == grading_id))).mappings()
    return [vote_of(VoteRow.of(row)) for row in rows]


async def page(tx: Tx, grading_id: str, cursor: Cursor | None = None, limit: int = 100) -> Slice[VoteRow]:
    """Return votes in the order of (item, judge, n), from after the cursor. The caller checked the project.

    Raises Invalid("invalid_limit", "bad_cursor").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    c = votes.c
    query = select(votes).where(c.grading_id == grading_id)
    if cursor is not None:
        item, judge, n = _key_of(cursor)
        later = and_(c.item == item, or_(c.judge > judge, and_(c.judge == judge, c.n > n)))
        query = query.where(or_(c.item > item, later))
    rows = await tx.execute(query.order_by(c.item, c.judge, c.n).limit(limit + 1))
    found = [VoteRow.of(row) for row in rows.mappings()]
    if len(found) <= limit:
        return Slice(found, None)
    last = found[limit - 1]
    return Slice(found[:limit], (f"{last.n} {last.judge}", last.item))


def _key_of(cursor: Cursor) -> tuple[str, str, int]:
    number, _, judge = cursor[0].partition(" ")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise Invalid("bad_cursor", "the cursor is not one of this list")
    return cursor[1], judge, int(number)


async def put(tx: Tx, new: Sequence[NewVote]) -> list[Vote]:
    """Write votes and return them as they stand: one that is recorded already stays. Those of a grading that was deleted
    are dropped."""
    ids = {one.grading_id for one in new}
    query = select(gradings.c.id).where(gradings.c.id.in_(ids)).with_for_update(key_share=True, read=True)
    there = set((await tx.execute(query.order_by(gradings.c.id))).scalars())
    # In one order everywhere, so that two that write the same votes cannot wait for each other.
    rows = sorted((_values(one) for one in new if one.grading_id in there), key=_key)
    if not rows:
        return [one.vote for one in new]
    made = await tx.execute(_INSERT, arrays_of(votes, _COLUMNS, rows))
    fresh = {tuple(row) for row in made}
    stored = {_key(row): await get(tx, *_key(row)) for row in rows if _key(row) not in fresh}
    await _own(tx, [one for one in new if one.grading_id in there])
    return [vote_of(row) if (row := stored.get(_key(_values(one)))) else one.vote for one in new]


async def _own(tx: Tx, new: Sequence[NewVote]) -> None:
    for project_id in sorted({one.project_id for one in new}):
        owners: dict[str, dict[str, int]] = {}
        for one in new:
            if one.project_id == project_id:
                owners.setdefault(one.grading_id, {}).update(one.blobs)
        await add_refs_of_many(tx, project_id, OWNER, owners)


async def get(tx: Tx, grading_id: str, judge: str, item: str, n: int) -> VoteRow | None:
    """Return one vote. The caller checked the project."""
    c = votes.c
    mine = (c.grading_id == grading_id, c.judge == judge, c.item == item, c.n == n)
    row = (await tx.execute(select(votes).where(*mine))).mappings().one_or_none()
    return None if row is None else VoteRow.of(row)


async def drop_invalid(tx: Tx, grading_ids: Sequence[str]) -> int:
    """Forget votes that are no opinion, so that they are asked for anew; return how many there were."""
    mine = (votes.c.grading_id.in_(list(grading_ids)), votes.c.state == VoteState.INVALID)
    return (await tx.execute(votes.delete().where(*mine))).rowcount


async def drop_blobs_of_run(tx: Tx, run_id: str) -> None:
    """Let go of what judges of the run's deliverable were asked and answered: it quotes what was delivered."""
    mine = select(gradings.c.id).where(gradings.c.run_id == run_id)
    asked = select(model_requests.c.id).where(model_requests.c.subject.in_(mine))
    c = blob_refs.c
    owned = or_(and_(c.owner_kind == OWNER, c.owner_id.in_(mine)), and_(c.owner_kind == BODIES, c.owner_id.in_(asked)))
    await tx.execute(blob_refs.delete().where(owned))


def vote_of(row: VoteRow) -> Vote:
    names = ("judge", "item", "n", "content", "cause", "asks", "model", "template", "template_sha256",
             "rendered_sha256", "took_s")  # fmt: skip
    usage = None if row.usage is None else TokenUsage.model_validate(row.usage)
    return Vote(state=VoteState(row.state), usage=usage, **{name: getattr(row, name) for name in names})


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["grading_id"], row["judge"], row["item"], row["n"]


def _values(new: NewVote) -> dict[str, Any]:
    vote = new.vote
    return {
        "grading_id": new.grading_id,
        "project_id": new.project_id,
        **{name: getattr(vote, name) for name in (*_KEY[1:], *_SAID)},
        "content": clean_json(vote.content),
        "model": clean_json(vote.model),
        "usage": None if vote.usage is None else vote.usage.model_dump(mode="json"),
    }
