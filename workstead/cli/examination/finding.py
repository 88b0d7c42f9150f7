"""One line of what ``doctor`` says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    ok: bool | None
    """None for what works with a restriction, or could not be looked at."""
    said: str
    """What was found and, unless it is fine, what to do."""

    @property
    def state(self) -> str:
        return {True: "ok", None: "note", False: "missing"}[self.ok]
