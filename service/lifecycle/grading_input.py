"""What one grading is given: the task, the sealed deliverable, judges, evidence, and what the run left for graders."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from service.domain.artifacts import ArtifactEntry
from service.domain.errors import NotFound, TooLarge, Unavailable
from service.domain.integrity import IntegrityReport
from service.domain.tasks import FileRef, TaskManifest, canonical_digest
from service.graders.contract import GraderFault, GradingInput
from service.lifecycle.client_facts import find_facts
from service.lifecycle.evidence import EvidenceOf, reference_evidence
from service.lifecycle.grading_context import GradeContext
from service.lifecycle.image_choice import host_name
from service.lifecycle.integrity import entries_of
from service.lifecycle.loop_artefacts import ARTEFACTS
from service.lifecycle.simulated_client import TRANSCRIPT
from service.store import attempts, gradings, runs, tasks
from service.store.blobs import BlobStore
from service.store.criteria import keep
from service.store.database import Tx, retrying
from service.store.rows import GradingRow

FACTS, ENVIRONMENT, REFERENCE = "client_facts", "environment", "reference_evidence"
TEXT_BYTES = 4 << 20
"""Of what a run's client knew or said."""


@dataclass(frozen=True, slots=True)
class _Stored:
    task: TaskManifest
    entries: Sequence[ArtifactEntry]
    texts: Mapping[str, str]
    """Name → digest of a text that the run has for graders."""
    environment: str
    recorded: GradingRow | None
    """Of a replayed evaluation's run: the grading whose judges' answers are given again."""


async def input_of(ctx: GradeContext, row: GradingRow, report: IntegrityReport | None) -> GradingInput:
    """Gather it. Raises GraderFault ``deliverable_changed``, ``extra_missing``; Unavailable."""

    async def read(tx: Tx) -> _Stored:
        return await _read(tx, row)

    stored = await retrying(ctx.db, read, ctx.database_patience_s)
    task, blobs = stored.task, ctx.blobs
    asked = stored.recorded or row  # the questions are those that were asked then
    return GradingInput(
        settings=row.settings,
        entries=stored.entries,
        open_hidden=partial(_open_one, blobs, _by_path(task.hidden), "hidden_missing"),
        open_deliverable=partial(_open_deliverable, blobs),
        integrity=report,
        rooms=ctx.rooms,
        task=task,
        content_of=blobs.path,
        open_visible=partial(_open_one, blobs, _by_path(task.visible), "visible_missing"),
        judges=None if ctx.judging is None else ctx.judging.of(row, stored.recorded and stored.recorded.id),
        evidence=EvidenceOf(ctx.for_report, row.project_id, row.run_id, row.deliverable_digest),
        keep=partial(_keep, ctx, row.id),
        seed=canonical_digest([asked.deliverable_digest, asked.settings_digest, asked.round]),
        secret=asked.id,  # 80 random bits, made after the deliverable was sealed
        extra=_extra(blobs, stored)
        | {REFERENCE: partial(reference_evidence, ctx.for_report, row.project_id, row.run_id)},
    )


async def _read(tx: Tx, row: GradingRow) -> _Stored:
    run = await runs.load(tx, row.run_id)
    task = await tasks.get(tx, row.project_id, run.task_id)
    if task is None or run.deliverable_digest != row.deliverable_digest:
        raise GraderFault("deliverable_changed", "the grading is of another deliverable than the run's")
    facts = await find_facts(tx, task.id, row.project_id, task.manifest)
    tried = await attempts.list_for_run(tx, row.run_id)
    left: dict[str, Any] = {}
    for attempt in tried:  # the last one that left anything
        left = attempt.provenance.get(ARTEFACTS, left)
    texts = {} if facts is None else {FACTS: facts.sha256}
    texts |= {TRANSCRIPT: left[TRANSCRIPT]["sha256"]} if TRANSCRIPT in left else {}
    environment = await host_name(tx, task.manifest.environment)
    recorded = None if run.evaluation_id is None or run.replay_of is None else await _recorded(tx, row, run.replay_of)
    return _Stored(task.manifest, await entries_of(tx, row.run_id), texts, environment, recorded)


async def _recorded(tx: Tx, row: GradingRow, run_id: str) -> GradingRow | None:
    """Return the other run's grading that this one repeats; null: that run was never graded so, and judges are asked."""
    same = (row.method, row.settings_digest, row.round)
    there = await gradings.list_for_run(tx, run_id)
    return next((one for one in there if (one.method, one.settings_digest, one.round) == same), None)


def _extra(blobs: BlobStore, stored: _Stored) -> dict[str, Any]:
    found: dict[str, Any] = {ENVIRONMENT: stored.environment}
    for name, sha in stored.texts.items():
        try:
            found[name] = blobs.read_bytes(sha, TEXT_BYTES).decode(errors="replace")
        except (NotFound, TooLarge) as error:
            raise GraderFault("extra_missing", f"{name} cannot be read") from error
    return found


async def _keep(ctx: GradeContext, grading_id: str, start: int, criteria: Sequence[Mapping[str, Any]]) -> None:
    """A convenience for whoever looks: with the database away it is left out, the verdict brings it."""
    with suppress(Unavailable):
        async with ctx.db.statement() as tx:
            await keep(tx, grading_id, start, criteria)


def _by_path(files: Sequence[FileRef]) -> dict[str, str]:
    return {file.path: file.sha256 for file in files}


def _open_one(blobs: BlobStore, files: Mapping[str, str], cause: str, path: str) -> BinaryIO:
    if path not in files:
        raise GraderFault(cause, f"the task has no file {path!r}")
    return _open(blobs, files[path], cause)


def _open_deliverable(blobs: BlobStore, entry: ArtifactEntry) -> BinaryIO:
    if entry.sha256 is None:
        raise GraderFault("deliverable_missing", f"{entry.path!r} was not sealed")
    return _open(blobs, entry.sha256, "deliverable_missing")


def _open(blobs: BlobStore, digest: str, cause: str) -> BinaryIO:
    try:
        return blobs.open(digest)
    except NotFound as error:
        raise GraderFault(cause, f"the content store has no {digest}") from error
