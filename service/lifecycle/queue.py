"""Step *queue*: from a queued run to an attempt in ``claimed``. Called by workers.claims; next: provision.

What a run needs (environment, runtime, a host that may run untrusted work) and whose turn it is, decides one statement
of the store; a host that has no free slot does not ask.
"""

from service.lifecycle.context import Context
from service.store import attempts
from service.store.rows import AttemptRow, HostRow


async def claim(ctx: Context, host: HostRow, free_slots: int) -> list[AttemptRow]:
    """Claim at most ``free_slots`` runs for this host. Raises Unavailable.

    Not repeated on a lost commit: what was claimed then is found among the host's live attempts (workers.host).
    """
    if free_slots <= 0:
        return []
    async with ctx.db.transaction() as tx:
        claimed = await attempts.claim(tx, host, free_slots)
    if claimed:
        ctx.crash.reach("claim.committed")
    return claimed
