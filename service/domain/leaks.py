"""The leak scan of exports (NEEDS A20): keys, tokens, addresses, numbers of telephones, URLs, and names that must not leave.

Whatever is found is named by its kind and a digest of the text, so that a waiver holds for this text alone, wherever it stands.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.domain.blinding import Names

_SHOWN = 24
"""Characters of what was found that a finding shows; of secrets the first four."""
_SECRET = frozenset({"key", "token"})
_KEYS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"\b(?:sk|pk|rk)[-_](?:ant-|proj-|live_|test_|or-)?[A-Za-z0-9_-]{16,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
)
_TOKENS = (
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"\bws[a-z]*_[a-zA-Z0-9]{8}_[A-Za-z0-9_-]{40,}",
    r"(?i:\bbearer[ \t]+[A-Za-z0-9._~+/-]{16,})",
)
_EMAIL = r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
_URL = r"\b(?:https?|wss?|ftp|s3|gs)://[^\s\"'<>\\)\]},]{3,400}"
_PHONE = r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\) ?|\d{2,4}[ .-])\d{3,4}[ .-]\d{3,4}(?![\w-])|(?<![\w.+-])\+\d{9,14}(?!\w)"
_KINDS = {
    "key": re.compile("|".join(_KEYS)),
    "token": re.compile("|".join(_TOKENS)),
    "url": re.compile(_URL),
    "email": re.compile(_EMAIL),
    "phone": re.compile(_PHONE),
}
_OURS = frozenset({"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"})
"""Words of the formats that figures are written in."""


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    """``<kind>:<first 12 digits of the text's sha256>``"""
    kind: str
    shown: str
    """The beginning of it; of secrets hardly anything."""
    places: tuple[str, ...]
    """Files, the first few."""


@dataclass(slots=True)
class Scan:
    """Looks through texts and file names; :meth:`findings` is what it saw."""

    names: Names = field(default_factory=Names)
    most_places: int = 5
    _seen: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def file(self, path: str, text: str | None) -> None:
        """Look through a file's name and, where it is text, its content."""
        self._note(path, path)
        if text is not None:
            self._note(path, text)

    def findings(self) -> list[Finding]:
        found = [_finding(kind, text, tuple(places)) for (kind, text), places in self._seen.items()]
        return sorted(found, key=lambda f: (f.kind, f.name))

    def _note(self, path: str, text: str) -> None:
        for kind, match in (*_matches(text), *(("name", name) for name in self.names.found_in(text))):
            places = self._seen.setdefault((kind, match), [])
            if path not in places and len(places) < self.most_places:
                places.append(path)


def _matches(text: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(text):
            found = match.group().rstrip(".;:")
            if found not in _OURS:
                yield kind, found


def _finding(kind: str, text: str, places: tuple[str, ...]) -> Finding:
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    shown = text[:4] + "…" if kind in _SECRET else text[:_SHOWN]
    return Finding(f"{kind}:{digest}", kind, shown, places)
