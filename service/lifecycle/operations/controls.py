"""Operation ``controls``: make the altered-work controls of runs and have them graded. What they show is read later.

Each control is found or made in one transaction: a start after a crash goes on where the first one stopped.
"""

from collections import Counter
from typing import Any

from service.domain.controls import ControlsSpec
from service.lifecycle.controls.making import Workshop, make_control
from service.lifecycle.operations.contract import Job, OperationContext

KIND = "controls"


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return ``{kinds: {kind: {made | found | reason: n}}}``. Raises JobCancelled, Unavailable."""
    spec = ControlsSpec.model_validate(job.spec)
    shop = Workshop(ctx.db, ctx.blobs, ctx.database_patience_s)
    total = len(spec.originals) * len(spec.kinds)
    counts: dict[str, Counter[str]] = {kind.value: Counter() for kind in spec.kinds}
    done = 0
    await job.report(0, total)
    for of in spec.originals:
        for kind in spec.kinds:
            said = await make_control(shop, job.project_id, spec, of, kind)
            ctx.crash.reach("controls.made")
            counts[kind.value][said] += 1
            done += 1
            await job.report(done, total)
    return {"kinds": {kind: dict(sorted(n.items())) for kind, n in counts.items()}}
