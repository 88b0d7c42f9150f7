"""What a piece of a run's output changes besides its events, in one statement: it runs many times a second."""

import json
from collections.abc import Mapping

from sqlalchemy import text

from service.domain.errors import FenceLost
from service.store.database import Tx
from service.store.rows import AttemptRow

_NOTE = text("""
    WITH noted AS (
        UPDATE attempts SET offsets = CAST(:offsets AS jsonb)
        WHERE run_id = :run_id AND n = :n AND fence = :fence AND state <> 'lost' RETURNING 1)
    UPDATE runs SET output_text_bytes = output_text_bytes + :text_bytes, turns = turns + :turns,
                    tool_calls = tool_calls + :tool_calls, doing = coalesce(:doing, doing), revision = revision + 1,
                    updated_at = clock_timestamp()
    WHERE id = :run_id AND EXISTS (SELECT 1 FROM noted) RETURNING 1""")


async def note(
    tx: Tx,
    attempt: AttemptRow,
    offsets: Mapping[str, int],
    *,
    text_bytes: int = 0,
    turns: int = 0,
    tool_calls: int = 0,
    doing: str | None = None,
) -> None:
    """Write how far each stream is stored, and add to the run's counters. Raises FenceLost.

    The caller holds the run's lock (an append, or ``fences.check_fence``); that notifies readers, this does not.
    """
    values = {
        "run_id": attempt.run_id,
        "n": attempt.n,
        "fence": attempt.fence,
        "offsets": json.dumps(dict(offsets)),
        "text_bytes": text_bytes,
        "turns": turns,
        "tool_calls": tool_calls,
        "doing": doing,
    }
    if (await tx.execute(_NOTE, values)).one_or_none() is None:
        raise FenceLost(attempt.run_id, attempt.n)
