"""Names that tell whose work something is: taken out of what raters see, and found where that cannot be done."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

HIDDEN = "▇▇▇"
SHORT = 4
"""Names of fewer characters count as whole words only: others would hit ordinary words."""
MOST_FOUND = 100
_PARTS = re.compile(r"[/@:·\s]+")
_VERSION = re.compile(r"[\d._-]+")


@dataclass(frozen=True, slots=True)
class Names:
    """What agents, models, providers and scaffolds of a project are called."""

    names: frozenset[str] = frozenset()
    _pattern: re.Pattern[str] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, names: Iterable[str]) -> "Names":
        """Take the names and their parts (``acme/one`` also as ``acme`` and ``one``); letters' case does not matter."""
        return _made(frozenset(names))

    def scrubbed(self, text: str) -> str:
        """Return the text with every name replaced."""
        return self._pattern.sub(HIDDEN, text) if self._pattern is not None else text

    def found_in(self, text: str) -> list[str]:
        """Return the names that the text holds, each once, in their order; short ones say nothing in a text."""
        if self._pattern is None:
            return []
        seen: dict[str, None] = {}
        for match in self._pattern.finditer(text):
            if len(match.group()) >= SHORT:
                seen[match.group().casefold()] = None
            if len(seen) >= MOST_FOUND:
                break
        return [*seen]


def parts_of(name: str) -> list[str]:
    """Return the words that a name is made of: ``acme/one`` is ``acme`` and ``one``."""
    return [part for part in _PARTS.split(name) if part]


@lru_cache(maxsize=64)  # thousands of names make a large pattern, and every file of every rater needs it
def _made(names: frozenset[str]) -> Names:
    found = {part.casefold() for name in names for part in (name, *_PARTS.split(name)) if _tells(part)}
    if not found:
        return Names()
    longest_first = sorted(found, key=lambda name: (-len(name), name))
    return Names(frozenset(found), re.compile("|".join(map(_as_pattern, longest_first)), re.IGNORECASE))


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number where scrubbing made two of them equal."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        stem, dot, ending = name.rpartition(".")
        numbered = f"{stem} ({count}).{ending}" if dot and "/" not in ending else f"{name} ({count})"
        found.append(name if count == 1 else numbered)
    return found


def _tells(part: str) -> bool:
    return len(part) > 1 and not _VERSION.fullmatch(part)


def _as_pattern(name: str) -> str:
    # "gpt-5" is also "gpt_5", "gpt 5" and "gpt5" in names of files.
    loose = r"[-_. ]?".join(re.escape(piece) for piece in re.split(r"[-_. ]+", name) if piece) or re.escape(name)
    return rf"(?<![^\W_]){loose}(?![^\W_])" if len(name) < SHORT else loose
