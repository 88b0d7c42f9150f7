"""How far a budget is used up: when to warn, when to hold (NEEDS B8)."""

from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

WARN_AT = Decimal("0.8")


class Level(IntEnum):
    """Of a budget, in percent."""

    FINE = 0
    WARNED = 80
    FULL = 100


@dataclass(frozen=True, slots=True)
class Use:
    """Of one budget, in dollars."""

    limit: Decimal
    spent: Decimal
    committed: Decimal = Decimal(0)
    """What is under way and may still be spent."""

    @property
    def level(self) -> Level:
        """By what is spent: what may still come warns nobody and stops nothing that is under way."""
        if self.spent >= self.limit:
            return Level.FULL
        return Level.WARNED if self.spent >= WARN_AT * self.limit else Level.FINE

    @property
    def is_open(self) -> bool:
        """Whether something new may begin."""
        return self.spent + self.committed < self.limit


def dollars(value: Decimal) -> str:
    """Return an amount as it is kept and shown: without an exponent, and without zeros at its end."""
    return f"{value.normalize():f}" if value else "0"


def told(before: dict[str, str], name: str, use: Use) -> bool:
    """Tell whether it is news that this budget is used up so far: once per limit and level."""
    return use.level is not Level.FINE and before.get(name) != mark(use)


def mark(use: Use) -> str:
    """Return what is remembered of a message."""
    return f"{int(use.level)} of {dollars(use.limit)}"
