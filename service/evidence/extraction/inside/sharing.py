"""Fair shares of a bounded number of characters: small texts stay whole, large ones keep head and tail of equal worth."""

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = 2 / 3
"""Of what is kept of a text that is cut."""


@dataclass(slots=True)
class Piece:
    """A text of which the middle may be missing: cut again, it loses what it would have lost at once."""

    kind: str
    label: str
    head: str
    tail: str = ""
    missing: int = 0
    """Characters between head and tail."""

    @property
    def kept(self) -> int:
        return len(self.head) + len(self.tail)

    def cut(self, most: int) -> "Piece":
        """Keep at most so many characters; return itself."""
        before, kept = round(most * HEAD), self.kept
        if kept <= most:
            return self
        if not self.missing:
            self.tail = self.head[kept - (most - before) :]
        else:
            self.tail = self.tail[max(0, len(self.tail) - (most - before)) :]
        self.head = self.head[:before]
        self.missing += kept - self.kept
        return self


def level(sizes: Sequence[int], most: int) -> int:
    """Return the largest share such that ``sum(min(size, share))`` is at most ``most``."""
    left, many = most, len(sizes)
    for size in sorted(sizes):
        if size * many > left:
            return left // many
        left -= size
        many -= 1
    return max(sizes, default=0)


def share(pieces: Sequence[Piece], most: int) -> None:
    """Cut the pieces so that all of them together have at most ``most`` characters."""
    if sum(p.kept for p in pieces) > most:
        each = level([p.kept for p in pieces], most)
        for piece in pieces:
            piece.cut(each)
