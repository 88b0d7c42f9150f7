"""What pollers and streams ask all the time, each in one statement that never touches a run's body (NEEDS D12)."""

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import RowMapping, text

from service.domain.errors import Unavailable
from service.domain.run_states import Outcome, Phase
from service.store.database import Database, Tx

MOST_POLLS = 200
"""Most polls that one statement answers."""
_TOKENS_AND_REVISIONS = text(
    """
    select asked.place, t.id as token_id, t.project_id, t.kind, t.hash, t.scopes, r.revision, r.phase
      from unnest(cast(:prefixes as text[]), cast(:run_ids as text[])) with ordinality as asked(prefix, run_id, place)
      join tokens t on t.prefix = asked.prefix
      left join runs r on r.id = asked.run_id and r.project_id = t.project_id
     where t.revoked_at is null
       and (t.expires_at is null or t.expires_at > clock_timestamp())
    """
)
_STREAM_STATE = text(
    """
    select r.revision, r.phase, r.outcome, r.ended_at, r.last_seq,
           exists (select 1 from gradings g where g.run_id = r.id and g.state in ('pending', 'grading')) as grading,
           exists (select 1 from tokens t
                    where t.id = :token_id
                      and t.revoked_at is null
                      and (t.expires_at is null or t.expires_at > clock_timestamp())) as token_good
      from runs r
     where r.id = :run_id and r.project_id = :project_id
    """
)


@dataclass(frozen=True, slots=True)
class TokenAndRevision:
    token_id: str
    project_id: str
    kind: str
    hash: bytes
    scopes: tuple[str, ...]
    revision: int | None
    """Null if the token's project has no such run."""
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class StreamState:
    """What decides whether a stream or long poll of a run is over."""

    revision: int
    phase: Phase
    outcome: Outcome | None
    ended_at: datetime | None
    last_seq: int
    grading: bool
    """A grading of any round is open."""
    token_good: bool

    @property
    def finished(self) -> bool:
        return self.phase is Phase.DONE and not self.grading


class Polls:
    """Asks for token and revision of many polls at once: those that come while a statement is out go with the next."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiting: deque[tuple[str, str, asyncio.Future[TokenAndRevision | None]]] = deque()
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, prefix: str, run_id: str) -> TokenAndRevision | None:
        """Return the live token with ``prefix`` and the revision of its project's run. The caller compares the hash.

        Both are printable ASCII: what the database does not take would fail for all. Raises Unavailable.
        """
        future: asyncio.Future[TokenAndRevision | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((prefix, run_id, future))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._work(), name="polls")
        return await future

    async def _work(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(MOST_POLLS, len(self._waiting)))]
            failure = Unavailable("database_unavailable", "the database gave no answer")
            try:
                found = await self._look([p for p, _, _ in batch], [r for _, r, _ in batch])
                for place, (_, _, future) in enumerate(batch, 1):
                    if not future.done():
                        future.set_result(found.get(place))
            except Unavailable as error:
                failure = error
            finally:  # nobody is left waiting, whatever it was
                for _, _, future in batch:
                    if not future.done():
                        future.set_exception(failure)

    async def _look(self, prefixes: list[str], run_ids: list[str]) -> dict[int, TokenAndRevision]:
        async with self._db.statement() as tx:
            rows = await tx.execute(_TOKENS_AND_REVISIONS, {"prefixes": prefixes, "run_ids": run_ids})
            return {row["place"]: _token_and_revision(row) for row in rows.mappings()}


def _token_and_revision(row: RowMapping) -> TokenAndRevision:
    return TokenAndRevision(
        token_id=row["token_id"],
        project_id=row["project_id"],
        kind=row["kind"],
        hash=bytes(row["hash"]),
        scopes=tuple(row["scopes"]),
        revision=row["revision"],
        phase=None if row["phase"] is None else Phase(row["phase"]),
    )


async def stream_state(tx: Tx, project_id: str, run_id: str, token_id: str) -> StreamState | None:
    """Return what a stream must know of a run, or None if the project has no such run."""
    keys = {"project_id": project_id, "run_id": run_id, "token_id": token_id}
    row = (await tx.execute(_STREAM_STATE, keys)).mappings().first()
    if row is None:
        return None
    outcome = row["outcome"]
    return StreamState(
        revision=row["revision"],
        phase=Phase(row["phase"]),
        outcome=None if outcome is None else Outcome(outcome),
        ended_at=row["ended_at"],
        last_seq=row["last_seq"],
        grading=row["grading"],
        token_good=row["token_good"],
    )


async def ping(tx: Tx) -> None:
    """Ask the database for an answer."""
    await tx.execute(text("select 1"))
