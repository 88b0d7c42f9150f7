"""Texts that a loop leaves for graders beside the deliverable: a transcript, a note to the client.

They are blobs of the run, named in the attempt's provenance under ``artefacts``: {name: {sha256, bytes}}. No sandbox of an
agent ever sees them.
"""

import asyncio
from collections.abc import Mapping

from service.lifecycle.context import Context
from service.lifecycle.work import Work
from service.store import attempts, blob_refs
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

ARTEFACTS = "artefacts"


async def keep_artefacts(ctx: Context, attempt: AttemptRow, work: Work, texts: Mapping[str, str]) -> None:
    """Store them; a repeat changes nothing. Raises FenceLost, Unavailable."""
    if not texts:
        return
    kept = {n: await asyncio.to_thread(ctx.blobs.store_bytes, t.encode(errors="replace")) for n, t in texts.items()}

    async def store(tx: Tx) -> None:
        now = await attempts.get(tx, attempt.run_id, attempt.n)
        before = {} if now is None else now.provenance
        named = {name: {"sha256": sha, "bytes": size} for name, (sha, size) in kept.items()}
        provenance = {**before, ARTEFACTS: {**before.get(ARTEFACTS, {}), **named}}
        await attempts.update(tx, attempt, provenance=provenance)
        await blob_refs.add_refs(tx, work.run.project_id, "run", attempt.run_id, kept.values())

    await retrying(ctx.db, store, ctx.timing.database_patience_s)
