"""What a driver wants done on its screen, in our own words: given so, or read from a provider's vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.api.desktop_answer import performed_of
from service.api.desktop_view import DesktopRequest
from service.api.driving import Driven
from service.api.screens import CALL
from service.desktop.vocabularies.registry import vocabulary_of
from service.domain.agents import ScaffoldManifest
from service.domain.desktop import MAX_ACTIONS, Batch, DesktopAction, SafetyCheck, Size
from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.store.rows import AttemptRow


@dataclass(frozen=True, slots=True)
class Read:
    actions: Sequence[DesktopAction]
    checks: Sequence[SafetyCheck] = ()
    ending: Literal["done", "fail"] | None = None


def read(body: DesktopRequest, manifest: ScaffoldManifest, screen: Size | None) -> Read:
    """Return what is to be done; ``screen``: its size, known where a vocabulary is to be read.

    Raises Invalid ``unknown_vocabulary``, ``unknown_action``, ``bad_action``, ``too_many_actions``.
    """
    if body.vocabulary is None or screen is None:
        return Read(body.actions)
    words = vocabulary_of(body.vocabulary, manifest.vocabulary)
    space = words.space(body.image or screen)
    readings = [words.read(payload, space, screen) for payload in body.written()]
    actions = [action for one in readings for action in one.actions]
    if len(actions) > MAX_ACTIONS:
        raise Invalid("too_many_actions", f"{len(actions)} actions; a batch has at most {MAX_ACTIONS}")
    checks = [check for one in readings for check in one.checks]
    return Read(actions, checks, next((one.ending for one in readings if one.ending is not None), None))


async def look_at_size(driven: Driven, attempt: AttemptRow) -> Size:
    """Ask how large the screen is now. Raises Expected."""
    head = {"call": CALL, "call_id": new_id("look"), "batch": Batch().model_dump(mode="json"), "before": False}
    seen = performed_of(await driven.ask(attempt.n, head))
    if seen.state is None:
        raise Conflict(seen.error or "desktop_lost", seen.detail or "the screen does not say how large it is")
    return Size(width=seen.state.width, height=seen.state.height)
