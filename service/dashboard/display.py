"""How values look on pages: numbers, times, durations, states."""

from datetime import UTC, datetime
from enum import StrEnum

from service.domain.run_states import Outcome, Phase
from service.store.rows import RunRow

NOTHING = "\u2013"
LIVE = frozenset({Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED, Phase.AWAITING_CONFIRMATION, Phase.COLLECTING})
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Tone(StrEnum):
    """CSS class of a state."""

    QUIET = "quiet"
    LIVE = "live"
    GOOD = "good"
    PART = "part"
    BAD = "bad"
    OURS = "ours"


def size(value: int | None) -> str:
    if value is None:
        return NOTHING
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{value} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def moment(value: datetime | None) -> str:
    return NOTHING if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds")


def points(score: float | None, max_score: float | None) -> str:
    if score is None or max_score is None:
        return NOTHING
    return f"{score:g} / {max_score:g}"


def words(value: str) -> str:
    return value.replace("_", " ")


def state_of(run: RunRow) -> str:
    """Return the one word for where a run is: its phase, or its outcome once it is done."""
    return words(run.outcome or run.phase)


def tone_of_score(score: float | None, max_score: float | None) -> Tone:
    if score is None or max_score is None:
        return Tone.QUIET
    if score >= max_score:
        return Tone.GOOD
    return Tone.PART if score > 0 else Tone.BAD


def tone_of(run: RunRow) -> Tone:
    if run.phase is not Phase.DONE:
        return Tone.LIVE if run.phase in LIVE or run.phase is Phase.GRADING else Tone.QUIET
    if run.outcome is Outcome.GRADED:
        return tone_of_score(run.score, run.max_score)
    return Tone.OURS if run.outcome is Outcome.UNGRADED else Tone.QUIET
