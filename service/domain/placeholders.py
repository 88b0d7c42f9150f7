"""Placeholders in texts: ``{name}``, replaced in one pass; ``{{`` and ``}}`` stand for braces.

What a placeholder inserts is never looked at again, and no attribute, index or format can be named.
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\{\{|\}\}|\{(gateway\.[a-z]+|[A-Za-z_][A-Za-z0-9_]*)\}")


def variables(text: str) -> set[str]:
    return {match[1] for match in _TOKEN.finditer(text) if match[1]}


def render(text: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder of a text whose ``variables`` were checked. Raises KeyError for one without a value."""

    def one(match: re.Match[str]) -> str:
        return values[match[1]] if match[1] else match[0][0]

    return _TOKEN.sub(one, text)
