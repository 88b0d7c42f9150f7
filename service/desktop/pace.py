"""How long a batch may take before deskd counts as stuck."""

from service.domain.desktop import ActionType, Batch, DesktopAction

SLACK_S = 20.0
_CLICK_GAP_S = 0.5
"""Between two equal clicks of one batch."""
_BY_CHARACTER_S = 0.02
"""Rare characters are typed in groups with pauses between them."""
_BY_PRESS_S = 0.05
_START_S = 15.0
"""Of the browser."""


def seconds_of(batch: Batch) -> float:
    """Return the waits that the batch asks for, what typing may take, and 20 s."""
    settle = 0.0 if batch.settle is None else batch.settle.cap_s
    return sum(map(_seconds, batch.actions)) + settle + SLACK_S


def _seconds(action: DesktopAction) -> float:
    if action.type is ActionType.CLICK:
        return action.seconds + _CLICK_GAP_S
    if action.type is ActionType.NAVIGATE:
        return _START_S + len(action.text) * _BY_CHARACTER_S
    if action.type is ActionType.TYPE:
        return len(action.text) * _BY_CHARACTER_S
    return action.seconds + action.repeat * _BY_PRESS_S
