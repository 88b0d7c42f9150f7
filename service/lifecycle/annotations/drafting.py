"""Annotation sets from the client's side: drawn up with an estimate, started, cancelled, filled by people, accepted."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.annotation_votes import Settled
from service.domain.annotations import (
    MOST_ANNOTATIONS,
    PERSON,
    Annotation,
    AnnotationSetRequest,
    AnnotationState,
    BroughtAnnotation,
    Target,
    brought_value,
)
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.surveys import SurveyState
from service.domain.tasks import Facet, canonical_digest
from service.lifecycle.annotations.wording import MOST_SHOWN, Template, asked, of_task, of_text, template
from service.lifecycle.surveys.control import SurveyKind, chosen_tasks
from service.lifecycle.surveys.estimating import estimate
from service.store import annotations, tasks
from service.store.annotations import NewAnnotation, SetTarget
from service.store.blobs import BlobStore
from service.store.catalogue import storable
from service.store.clock import now
from service.store.database import Tx
from service.store.rows_annotations import AnnotationSetRow

ANNOTATIONS = SurveyKind("annotations", annotations.SETS, annotations.forget_failed)
MOST_WORDS = 1_000
"""Of people on one item."""
_ASSUMED_DOCUMENT = MOST_SHOWN // 4
"""Characters of a deliverable, for the estimate: most are not read before they are asked about."""


async def draw_up(
    tx: Tx, blobs: BlobStore, project_id: str, wish: AnnotationSetRequest, author: str
) -> AnnotationSetRow:
    """Fix the items and estimate; nobody is asked yet.

    Raises NotFound ``benchmark_not_found``, ``task_not_found``, ``run_not_found``, ``overlay_not_found``, Invalid
    ``no_tasks``, ``too_many_annotations``, ``unknown_model``, ``unknown_effort``, ``unknown_template``, ``unstorable_text``.
    """
    storable(wish)
    shape = template(wish.template)
    benchmark_id, targets, texts = await _targets(tx, project_id, wish)
    total = len(targets) * len(wish.annotators) * wish.votes
    if total > MOST_ANNOTATIONS:
        raise Invalid("too_many_annotations", f"{total} votes; a set has at most {MOST_ANNOTATIONS}", votes=total)
    chars = await _chars(tx, project_id, wish, shape, targets) * wish.votes if total else 0
    questions = len(targets) * wish.votes
    expected = await estimate(tx, project_id, wish.annotators, chars=chars, questions=questions, part="annotator")
    words = shape.whole.encode()
    data = {hashlib.sha256(one).hexdigest(): one for one in (words, *texts)}
    await asyncio.to_thread(blobs.store_many, data)
    values = {
        "name": wish.name, "about": wish.about, "spec": wish.kept().model_dump(mode="json"),
        "benchmark_id": benchmark_id, "template": shape.name,
        "template_sha256": hashlib.sha256(words).hexdigest(), "total": total, "labels": dict(wish.labels),
        "estimate": {"targets": len(targets), "votes": total, **expected}, "author": author,
    }  # fmt: skip
    sizes = {digest: len(one) for digest, one in data.items()}
    return await annotations.create(tx, project_id, values, targets, sizes)


async def start(tx: Tx, project_id: str, set_id: str, *, retry_failed: bool = False) -> AnnotationSetRow:
    """Let an operation ask for what is missing; with ``retry_failed`` also for what failed. Under way already: stays so.

    Raises NotFound, Conflict ``annotations_complete``, ``annotations_accepted``, Invalid ``no_annotators``.
    """
    row = await _open(tx, project_id, set_id)
    if not row.spec.annotators:
        raise Invalid("no_annotators", "the set asks nobody: people's labels are brought into it")
    return await ANNOTATIONS.start(tx, row, retry_failed=retry_failed)


async def cancel(tx: Tx, project_id: str, set_id: str) -> AnnotationSetRow:
    """End a set that is not done; what was made stays. May be repeated. Raises NotFound, Conflict ``annotations_complete``."""
    return await ANNOTATIONS.cancel(tx, await ANNOTATIONS.locked(tx, project_id, set_id))


async def bring(tx: Tx, project_id: str, set_id: str, rows: Sequence[BroughtAnnotation], author: str) -> int:
    """Record what a person says of items; return how much is new: the same value and reason again is not.

    Raises NotFound, Conflict ``annotations_accepted``, ``too_many_words``, Invalid ``target_not_in_set``, ``bad_value``.
    """
    row = await _open(tx, project_id, set_id)
    known = await annotations.targets_of(tx, set_id)
    names = {one.item_key: one.target for one in known if one.item_key is not None}
    names |= {one.target: one.target for one in known}
    unknown = sorted({one.target for one in rows} - set(names))
    if unknown:
        raise Invalid("target_not_in_set", f"{unknown[0][:200]!r} is no item of the set", targets=unknown[:100])
    last = await annotations.of_people(tx, set_id)
    new: list[NewAnnotation] = []
    for one in rows:
        target, value = names[one.target], _value(row, one)
        n, before, reason = last.get(target, (0, None, None))
        if n and (before, reason) == (value, one.reason):
            continue
        if n >= MOST_WORDS:
            raise Conflict("too_many_words", f"{one.target}: people have said something {n} times", target=one.target)
        last[target] = (n + 1, value, one.reason)
        said = Annotation(target, PERSON, n + 1, AnnotationState.ANSWERED, value, one.reason, author=author)
        new.append(NewAnnotation(row.id, project_id, said))
    if new:
        await annotations.put(tx, new)
        await annotations.settle_all(tx, row)
    return len(new)


async def accept(tx: Tx, project_id: str, set_id: str, author: str) -> AnnotationSetRow:
    """Seal a set: it never changes again, and its values are the facet ``name@version``. May be repeated.

    Raises NotFound, Conflict ``annotations_incomplete``, ``no_values``.
    """
    row = await ANNOTATIONS.locked(tx, project_id, set_id)
    if row.accepted_at is not None:
        return row
    if row.spec.annotators and row.state is not SurveyState.DONE:
        raise Conflict("annotations_incomplete", f"the set is {row.state}: not all of its questions are asked")
    settled = await annotations.settle_all(tx, row)
    if all(one.value is None for one in settled.values()):
        raise Conflict("no_values", "no item has a value: nothing was answered, or every vote is a tie")
    at = await now(tx)
    ended = {"state": SurveyState.DONE, "ended_at": row.ended_at or at, "accepted_at": at, "accepted_by": author}
    return await annotations.SETS.change(tx, set_id, **ended, digest=_digest(row, settled))


def _digest(row: AnnotationSetRow, settled: Mapping[str, Settled]) -> str:
    values = sorted((target, one.value) for target, one in settled.items() if one.value is not None)
    return canonical_digest([row.name, row.version, row.spec.answer.model_dump(mode="json"), values])


def _value(row: AnnotationSetRow, one: BroughtAnnotation) -> Facet:
    try:
        return brought_value(row.spec.answer, one.value)
    except ValueError as error:
        raise Invalid("bad_value", f"{one.target}: {error}", target=one.target) from error


async def _open(tx: Tx, project_id: str, set_id: str) -> AnnotationSetRow:
    row = await ANNOTATIONS.locked(tx, project_id, set_id)
    if row.accepted_at is not None:
        raise Conflict("annotations_accepted", f"{row.overlay} is accepted and never changes: make a new version")
    return row


async def _targets(
    tx: Tx, project_id: str, wish: AnnotationSetRequest
) -> tuple[str | None, list[SetTarget], list[bytes]]:
    """Return the benchmark's id, the items, and their texts where these came with the request."""
    if wish.about is Target.TEXT:
        texts = {one: text.encode() for one, text in wish.texts.items()}
        named = [SetTarget(one, text_sha256=hashlib.sha256(data).hexdigest()) for one, data in texts.items()]
        return None, named, [*texts.values()]
    if wish.about is Target.DELIVERABLE:
        there = await annotations.runs_there(tx, project_id, wish.run_ids)
        missing = sorted(set(wish.run_ids) - there)
        if missing:
            raise NotFound("run_not_found", f"no run {missing[0]}", runs=missing[:100])
        return None, [SetTarget(one) for one in dict.fromkeys(wish.run_ids)], []
    benchmark_id, chosen = await chosen_tasks(tx, project_id, wish.benchmark, wish.task_ids, wish.tasks, wish.seed)
    targets = [SetTarget(one.task_id, one.task_id, one.key if benchmark_id else None) for one in chosen]
    return benchmark_id, targets, []


async def _chars(
    tx: Tx, project_id: str, wish: AnnotationSetRequest, shape: Template, targets: Sequence[SetTarget]
) -> int:
    """Return how much one annotator reads for one vote on every item, characters."""
    own = _length(shape, wish)
    match wish.about:
        case Target.TEXT:
            shown = sum(map(len, wish.texts.values()))
        case Target.DELIVERABLE:
            shown = _ASSUMED_DOCUMENT * len(targets)
        case _:
            manifests = await tasks.manifests(tx, project_id, [one.target for one in targets])
            shown = sum(of_task(manifest, wish.about).chars for manifest in manifests.values())
    return own * len(targets) + shown


def _length(shape: Template, wish: AnnotationSetRequest) -> int:
    """Return what the words around an item take: the same for every one."""
    found: Any = asked(shape, wish, of_text(""), 1).question
    return len(found.system) + len(found.text)
