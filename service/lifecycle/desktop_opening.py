"""How the screen of an attempt is opened: from its row alone, so that every process that holds its sandbox does the same."""

from service.desktop.desktops import Opening
from service.desktop.environment import SCREEN_ENVIRONMENT
from service.domain.agents import SCREENS
from service.domain.desktop import Screen
from service.store.rows import AttemptRow

REDACTED = "redacted"


def opening_of(attempt: AttemptRow) -> Opening | None:
    """Return null for a surface without a screen (and before the attempt was bound to its sandbox).

    Tokens are not in the row: deskd, which every program inside can read, gets none.
    """
    provenance = attempt.provenance or {}
    surface = next((s for s in SCREENS if s == provenance.get("surface")), None)
    if surface is None:
        return None
    env = {name: value for name, value in (attempt.env or {}).items() if value != REDACTED}
    screen = Screen.model_validate(provenance.get("screen") or {})
    return Opening({**env, **SCREEN_ENVIRONMENT}, surface, screen.size)
