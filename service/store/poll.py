"""What pollers and streams ask all the time, each in one statement that never touches a run's body (NEEDS D12)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from service.domain.run_states import Outcome, Phase
from service.store.database import Tx

_TOKEN_AND_REVISION = text(
    """
    select t.id as token_id, t.project_id, t.kind, t.hash, t.scopes, r.revision, r.phase
      from tokens t
      left join runs r on r.id = :run_id and r.project_id = t.project_id
     where t.prefix = :prefix
       and t.revoked_at is null
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


async def token_and_revision(tx: Tx, prefix: str, run_id: str) -> TokenAndRevision | None:
    """Return the live token with ``prefix`` and the revision of its project's run. The caller compares the hash."""
    row = (await tx.execute(_TOKEN_AND_REVISION, {"prefix": prefix, "run_id": run_id})).mappings().first()
    if row is None:
        return None
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
