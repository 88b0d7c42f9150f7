"""The files of words that surveys ask with: one per version, never changed, so that what a digest names can be read again."""

import re
from functools import cache
from pathlib import Path

from service.domain.errors import Invalid

_TEXTS = Path(__file__).parents[1] / "prompt_texts"
_FILE = re.compile(r"^([a-z]+)-(\d+)\.toml$")


@cache
def template_text(kind: str, name: str) -> str:
    """Return the file of a template ``<kind>@<version>``. Raises Invalid ``unknown_template``."""
    known = {f"{m[1]}@{m[2]}": p for p in sorted(_TEXTS.iterdir()) if (m := _FILE.match(p.name)) and m[1] == kind}
    if name not in known:
        raise Invalid("unknown_template", f"no template of {kind}s is called {name[:64]!r}", templates=sorted(known))
    return known[name].read_text(encoding="utf-8")
