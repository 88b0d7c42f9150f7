"""A queued run's ``hold`` and the ETag that goes with it: both change while the run's row does not."""

import hashlib
import json
from typing import Any

from service.api.conditional import revision_tag
from service.api.rendering import rfc3339
from service.domain.run_states import Phase
from service.store import queue_places
from service.store.database import Tx

Hold = dict[str, Any]


async def hold_of(tx: Tx, run_id: str) -> Hold | None:
    """Return why the run is not at work and where it stands; null unless it is queued."""
    found = (await queue_places.holds_of(tx, [run_id])).get(run_id)
    return None if found is None else found | {"since": rfc3339(found["since"])}


def hold_tag(revision: int, hold: Hold | None) -> str:
    """Return the strong ETag of a run whose hold was worked out now; without one, that of its revision."""
    if hold is None:
        return revision_tag(revision)
    digest = hashlib.sha256(json.dumps(hold, sort_keys=True).encode()).hexdigest()
    return f'"{revision}-{digest[:12]}"'


async def current_tag(tx: Tx, run_id: str, revision: int, phase: Phase) -> str:
    """Return the run's ETag of now. Costs further statements only while it is queued."""
    return hold_tag(revision, await hold_of(tx, run_id) if phase is Phase.QUEUED else None)
