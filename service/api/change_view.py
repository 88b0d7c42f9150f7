"""The feed of changed resources as clients see it: kinds and the scopes they need, cursors, compact bodies."""

import hashlib
import re
from typing import Any

from service.api.auth import Caller
from service.api.rendering import Digest, Timestamp, View, sha256_name
from service.domain import cursors
from service.domain.errors import Invalid
from service.store.changes import KINDS, Change, Position

SCOPE_OF = {
    "run": "runs:read",
    "grading": "gradings:read",
    "operation": "benchmarks:read",
    "benchmark": "benchmarks:read",
    "campaign": "gradings:read",
    "evaluation": "runs:read",
}
_ON_REQUEST = frozenset({"campaign", "evaluation"})
"""Came later: unasked they would make the cursors of clients that are at work useless."""
_PLACE = re.compile(r"(\d{1,18})\.(\d{1,18})\.([a-z]{0,20})\Z", re.ASCII)


class ChangedRun(View):
    phase: str
    hold: dict[str, Any] | None
    outcome: str | None
    ended_because: str | None
    task_id: str
    agent_id: str
    evaluation_id: str | None
    sample: int
    attempt: int
    labels: dict[str, str]
    flags: list[str]
    last_seq: int
    verdict_state: str
    score: float | None
    max_score: float | None
    updated_at: Timestamp


class ChangedGrading(View):
    run_id: str
    method: str
    plan: str
    primary: bool
    round: int
    vote: int
    state: str
    score: float | None
    max_score: float | None
    cause: str | None
    graded_at: Timestamp | None


class ChangedOperation(View):
    kind: str
    state: str
    done: int
    total: int | None
    unit: str
    ended_at: Timestamp | None


class ChangedBenchmark(View):
    name: str
    version: str
    digest: Digest
    labels: dict[str, str]


class ChangedCampaign(View):
    name: str
    form: str
    state: str
    items: int
    decided: int
    labels: dict[str, str]
    updated_at: Timestamp | None


class ChangedEvaluation(View):
    name: str
    state: str
    benchmark_id: str | None
    total: int
    counts: dict[str, dict[str, int]]
    hold: dict[str, Any] | None
    labels: dict[str, str]
    updated_at: Timestamp | None


_BODY_OF: dict[str, type[View]] = {
    "run": ChangedRun, "grading": ChangedGrading, "operation": ChangedOperation, "benchmark": ChangedBenchmark,
    "campaign": ChangedCampaign, "evaluation": ChangedEvaluation,
}  # fmt: skip


class Changed(View):
    """A resource that changed, as it is now. It may come again without having changed (at least once)."""

    kind: str
    """run | grading | operation | benchmark | campaign, evaluation (only where they are asked for)"""
    id: str
    revision: int
    deleted: bool
    cursor: str
    """Goes on after this one."""
    body: ChangedRun | ChangedGrading | ChangedOperation | ChangedBenchmark | ChangedCampaign | ChangedEvaluation | None
    """The most needed members, null where the resource is deleted."""


class ChangeList(View):
    data: list[Changed]
    next: str | None
    """Relative URL of what is there already and did not fit; null when the client is up to date."""
    next_after: str
    """Cursor to go on from, also when nothing came."""


def chosen_kinds(caller: Caller, kinds: str | None) -> tuple[str, ...]:
    """Return the kinds asked for, else those of old that the token may read. Raises Invalid for an unknown one, Forbidden."""
    if kinds is None:
        found = tuple(k for k in KINDS if k not in _ON_REQUEST and caller.may(SCOPE_OF[k]))
        if not found:
            caller.require(SCOPE_OF["run"])
        return found
    names = {k for k in kinds.split(",") if k}
    if not names or not names <= set(KINDS):
        raise Invalid("unknown_kind", "the feed has no such kind of resource", known=list(KINDS))
    for name in sorted(names):
        caller.require(SCOPE_OF[name])
    return tuple(sorted(names))


def cursor_of(position: Position, kinds: tuple[str, ...]) -> str:
    """Return the opaque cursor; it is good for the same kinds only, as others have not been looked at."""
    place = f"{position.txid}.{position.since}.{position.kind}"
    return cursors.encode((place, position.resource_id), _mark(kinds))


def position_of(cursor: str, kinds: tuple[str, ...]) -> Position:
    """Raises Invalid("bad_cursor")."""
    place, resource_id = cursors.decode(cursor, _mark(kinds))
    match = _PLACE.match(place)
    if match is None:
        raise Invalid("bad_cursor", "the cursor is damaged")
    return Position(int(match[1]), match[3], resource_id, int(match[2]))


def changed_view(change: Change, kinds: tuple[str, ...]) -> Changed:
    body = None
    if change.body is not None:
        values = change.body
        if change.kind == "benchmark":
            values = values | {"digest": sha256_name(values["digest"])}
        body = _BODY_OF[change.kind].model_validate(values)
    return Changed.model_construct(
        kind=change.kind,
        id=change.id,
        revision=change.revision,
        deleted=change.deleted,
        cursor=cursor_of(change.position, kinds),
        body=body,
    )


def _mark(kinds: tuple[str, ...]) -> str:
    return hashlib.sha256(f"changes {','.join(kinds)}".encode()).hexdigest()[:12]
