"""A person contests a verdict, or puts another one in its place (NEEDS A28). The old one is kept and shown beside it."""

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import EventType, NewEvent
from service.domain.verdicts import ENDED_VERDICTS, VerdictState
from service.store import combining, events, gradings, reviews
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.rows import GradingRow
from service.store.rows_grading import ReviewRow


async def contest(tx: Tx, project_id: str, grading_id: str, author: str, reason: str) -> ReviewRow:
    """Note that somebody disagrees; nothing else changes. Raises NotFound, Conflict ``grading_not_ended``."""
    grading = await _ended(tx, project_id, grading_id)
    return await reviews.add(tx, grading, reviews.CONTEST, author, reason)


async def override(
    tx: Tx, project_id: str, grading_id: str, author: str, reason: str, score: float, max_score: float | None
) -> ReviewRow:
    """Put a score in the verdict's place: the run follows the newest override that stands.

    ``max_score`` defaults to the verdict's own, 1 where it has none. Raises NotFound, Conflict ``grading_not_ended``, Invalid
    ``bad_score``.
    """
    grading = await _ended(tx, project_id, grading_id)
    most = max_score if max_score is not None else grading.max_score if grading.max_score is not None else 1.0
    if not 0 <= score <= most:
        raise Invalid("bad_score", f"a score is 0 to max_score, which is {most:g}")
    made = await reviews.add(tx, grading, reviews.OVERRIDE, author, reason, score, most)
    await _say(tx, grading, made)
    return made


async def withdraw(tx: Tx, project_id: str, review_id: str) -> ReviewRow:
    """Take a contest or an override back; what stood before stands again. Raises NotFound."""
    found = await reviews.get(tx, project_id, review_id)
    if found is None:
        raise NotFound("not_found")
    await lock_run(tx, found.run_id)
    grading = await gradings.get(tx, project_id, found.grading_id)
    assert grading is not None, "reviews go with their gradings"
    made = await reviews.withdraw(tx, review_id)
    if found.kind == reviews.OVERRIDE and found.withdrawn_at is None:
        await _say(tx, grading, made)
    return made


async def _ended(tx: Tx, project_id: str, grading_id: str) -> GradingRow:
    """Return the grading, its run locked. Raises NotFound, Conflict."""
    grading = await gradings.get(tx, project_id, grading_id)
    if grading is None:
        raise NotFound("not_found")
    await lock_run(tx, grading.run_id)
    if grading.state not in ENDED_VERDICTS:
        raise Conflict("grading_not_ended", "there is no verdict yet")
    return grading


async def _say(tx: Tx, grading: GradingRow, review: ReviewRow) -> None:
    """Tell the run's log which score the grading has now, and let the run follow."""
    standing = (await reviews.standing_overrides(tx, [grading.id])).get(grading.id)
    payload = {name: getattr(grading, name) for name in ("method", "state", "score", "max_score", "cause", "round")}
    payload |= {"grading_id": grading.id, "overridden": standing is not None, "review_id": review.id}
    if standing is not None:
        payload |= {"state": VerdictState.GRADED, "score": standing.score, "max_score": standing.max_score}
    run = await lock_run(tx, grading.run_id)
    when = review.withdrawn_at or review.created_at
    offset = int(review.withdrawn_at is not None)
    event = NewEvent(EventType.VERDICT, payload, f"review:{review.id}", offset, when)
    await events.append(tx, run["id"], run["attempt"], None, [event])
    if grading.primary:
        await combining.combine(tx, await lock_run(tx, grading.run_id), grading.plan)
