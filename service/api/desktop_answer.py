"""A worker's answer to a batch, as the API reads it. The worker has checked what the sandbox said; here it is only taken apart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from service.desktop.performed import Encoded, Performed
from service.domain.desktop import ActionResult, DesktopState
from service.domain.errors import Conflict, RateLimited, TooLarge
from service.lifecycle.bridge_frames import Frame

BUSY, TOO_LARGE = "busy", "too_large"
"""Errors of batches of which nothing was done."""
INTERRUPTED = "interrupted"


def performed_of(frame: Frame) -> Performed:
    """Raises RateLimited ``busy``, TooLarge ``batch_too_large``: nothing was done."""
    head = frame.head
    if head.get("error") == BUSY:
        raise RateLimited(BUSY, "too many batches wait for this screen", headers={"Retry-After": "1"})
    if head.get("error") == TOO_LARGE:
        raise TooLarge("batch_too_large", str(head.get("detail") or ""))
    pictures = _pictures(cast("list[dict[str, Any]]", head.get("images") or []), frame.body)
    state = head.get("state")
    return Performed(
        state=None if state is None else DesktopState.model_validate(state),
        results=[ActionResult.model_validate(one) for one in cast("list[Any]", head.get("results") or [])],
        images=[picture for role, picture in pictures if role == "action"],
        before=next((picture for role, picture in pictures if role == "before"), None),
        shot=next((picture for role, picture in pictures if role == "shot"), None),
        took_s=float(head.get("took_s") or 0.0),
        error=head.get("error"),
        detail=str(head.get("detail") or ""),
    )


def interrupted(afterwards: Performed) -> Performed:
    """Return the outcome of a batch that a worker died over, of which ``afterwards`` is a look."""
    if afterwards.error is not None:
        return afterwards
    detail = "the worker died over it; what of it was done is not known"
    return replace(afterwards, error=INTERRUPTED, detail=detail)


def lost(came: Performed) -> bool:
    """Tell whether the desktop as a whole did not do it."""
    return came.error is not None and came.error != INTERRUPTED


def seen_of(came: Performed) -> bytes:
    """Return the picture that was asked for. Raises Conflict, with the desktop's reason for giving none."""
    if came.shot is None:
        raise Conflict(came.error or "desktop_lost", came.detail or "the screen gives no picture")
    return came.shot.data


def _pictures(listed: Sequence[dict[str, Any]], body: bytes) -> list[tuple[str, Encoded]]:
    found: list[tuple[str, Encoded]] = []
    at = 0
    for one in listed:
        size = int(one["bytes"])
        data = body[at : at + size]
        found.append((str(one["role"]), Encoded(one["format"], int(one["width"]), int(one["height"]), data)))
        at += size
    return found
