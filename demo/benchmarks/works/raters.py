"""The people of the demo, by programs: they open what they are shown of RLI's projects and say what a client would say.

A strict one wants the part that the brief is about; a lenient one takes any work that is not talk.
"""

from collections.abc import Mapping
from typing import Any

from demo.benchmarks.works.opinions import TALK
from demo.benchmarks.works.rli import MARKS, ORDER, WORKS

WHOLE, PARTIAL, NONE = 2, 1, 0


def worth(brief: str, delivered: Mapping[str, bytes]) -> int:
    """Return how much of the work is there. ``brief``: Markdown, its first line the title."""
    title = brief.lstrip("# ").partition("\n")[0].strip()
    project = next((name for name, (known, _) in WORKS.items() if known == title), "")
    texts = [data.decode("utf-8", "replace") for data in delivered.values()]
    if not any(texts) or any(sign in text for text in texts for sign in (TALK, ORDER.strip()[:40])):
        return NONE
    mark = MARKS.get(project)
    return WHOLE if mark is None or any(mark in text for text in texts) else PARTIAL


def panel_rating(found: int, *, lenient: bool) -> dict[str, Any]:
    """Return the rating against the professional's work."""
    if found == WHOLE or (found == PARTIAL and lenient):
        return {"rating": 2}
    tags = ["incomplete"] if found == PARTIAL else ["poor_quality", "incomplete"]
    return {"rating": 1, "tags": tags, "reason": "The part that the brief is about is missing."}


def pair_rating(a: int, b: int) -> dict[str, Any]:
    """Return which of two works satisfies the brief, and which is better."""
    whole_a, whole_b = a == WHOLE, b == WHOLE
    return {"completion": _side(whole_a, whole_b), "quality": _side(a, b)}


def _side(a: int, b: int) -> str:
    return "same" if a == b else "a" if a > b else "b"
