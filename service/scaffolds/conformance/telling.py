"""Actions on a screen as a scripted model says them: in every vocabulary that a model may be asked in and that has the words."""

from collections.abc import Sequence
from typing import Any

from service.desktop.vocabularies.registry import names, vocabulary
from service.domain.desktop import HEIGHT, WIDTH, DesktopAction, Size
from service.domain.errors import Invalid
from service.models.scripted.scenario import Payloads

_SCREEN = Size(width=WIDTH, height=HEIGHT)
_FOREIGN = ("osworld.",)
"""No model is asked in these."""
WAIT: dict[str, Any] = {"type": "wait", "seconds": 2.0}
"""The one length that every vocabulary with a wait can say."""


def told(actions: Sequence[dict[str, Any]]) -> Payloads:
    """Return vocabulary → payloads of ``actions``, which are in pixels of a screen of the usual size."""
    meant = [DesktopAction.model_validate(action) for action in actions]
    asked = [name for name in names() if not name.startswith(_FOREIGN)]
    return {name: said for name in asked if (said := _said(name, meant)) is not None}


def _said(name: str, actions: Sequence[DesktopAction]) -> list[dict[str, Any]] | None:
    words = vocabulary(name)
    try:
        return [dict(words.write(action, words.space(_SCREEN), _SCREEN)) for action in actions]
    except Invalid:
        return None
