"""The built-in task of a preflight, and what its run's end says."""

import hashlib
from collections.abc import Sequence

from service.domain.limits import MIB, Limits
from service.domain.run_states import EndedBecause
from service.domain.tasks import FileRef, TaskManifest
from service.store.rows import RunRow
from service.store.rows_requests import ModelRequestRow

NAME = "workstead/preflight"
"""Reserved: the one task of this name in each environment."""
WALL_S = 120.0
READY = b"ready\n"
"""What an oracle delivers."""
_FINE = frozenset({EndedBecause.COMPLETED, EndedBecause.WALL_CLOCK})
"""A slow agent is at work: two minutes are a look at the machinery, not at the agent."""

INSTRUCTION = """\
This is a trial of the set-up, not a task that is graded. Make the file `output/ready.txt` with the single word

    ready

in it, and do nothing else.
"""


def task(environment: str) -> TaskManifest:
    """Return the task; the same one again has the same digest."""
    ready = FileRef(path="solution/output/ready.txt", sha256=hashlib.sha256(READY).hexdigest(), size_bytes=len(READY))
    return TaskManifest(
        name=NAME,
        instruction=INSTRUCTION,
        hidden=[ready],
        environment=environment,
        limits=Limits(wall_clock_s=WALL_S, disk_bytes=512 * MIB),
    )


def problem(run: RunRow, requests: Sequence[ModelRequestRow], said: str) -> str:
    """Return what was wrong with a run that is done; empty: nothing. ``said``: the end of its output."""
    refused = _refusal(requests)
    if run.ended_because in _FINE:
        return refused
    words = [f"ended as {run.ended_because or run.outcome or 'nothing'}", refused, said.strip()]
    return ": ".join(word for word in words if word)


def _refusal(requests: Sequence[ModelRequestRow]) -> str:
    """Return the last refusal, if no request was answered."""
    if any(r.status is not None and r.status < 400 for r in requests):
        return ""
    failed = [r for r in requests if r.status is not None]
    if not failed:
        return ""
    return f"{failed[-1].requested_model or 'its model'} answered {failed[-1].status} {failed[-1].error or ''}".strip()
