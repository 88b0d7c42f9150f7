"""What a reader found in a file."""

from dataclasses import dataclass, field

MIB = 1 << 20


class Trouble(Exception):
    """The file does not open. ``type`` is one of the report's problem types."""

    def __init__(self, type: str, detail: str = "") -> None:
        super().__init__(detail)
        self.type = type
        self.detail = detail


@dataclass(slots=True)
class Seen:
    """Of a file that opens."""

    facts: dict[str, int | float | str] = field(default_factory=dict[str, int | float | str])
    """By the names of the report's ``Facts``."""
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(type, detail) of what is wrong although it opens."""
