"""Prompts of judges: files ``prompt_texts/<name>-<version>.md`` of each method, or a plan's own text.

A prompt has two sides, parted by the line ``---- text ----``: the system's, with rules and criteria, and the text, in which
what was delivered stands in data blocks. Which placeholders belong on which side is the method's, so that no wording can put
what was delivered among the rules. A new wording is a new file: a digest of long ago can be read again.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.domain import placeholders
from service.domain.errors import Invalid
from service.graders.contract import GraderFault, Question
from service.graders.judging.settings import JudgingSettings
from service.models.messages import Image

_PART = re.compile(r"^---- text ----\n", re.MULTILINE)
_FILE = re.compile(r"^([a-z][a-z0-9_]*)-(\d+)\.md$")


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    """``name@version``; of a plan's own text ``own@`` and the head of its digest."""
    text: str
    system_side: str
    text_side: str

    def question(self, system: Mapping[str, str], text: Mapping[str, str], images: Sequence[Image] = ()) -> Question:
        """Fill both sides in, in one pass each: what a placeholder inserts is never looked at again."""
        said = placeholders.render(self.system_side, system), placeholders.render(self.text_side, text)
        return Question(said[0], said[1], self.name, self.text, images)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The prompts of one method. Every placeholder named here stands in each of its prompts, on its side, and no other."""

    folder: Path
    system: frozenset[str]
    text: frozenset[str]

    def prompt(self, settings: JudgingSettings) -> Prompt:
        """Return what the settings ask for. Raises Invalid ``unknown_template``, ``bad_template``."""
        if settings.prompt_text is not None:
            digest = hashlib.sha256(settings.prompt_text.encode(errors="replace")).hexdigest()
            return self._checked(f"own@{digest[:12]}", settings.prompt_text)
        known = _texts(self.folder)
        if settings.prompt not in known:
            detail = f"the method has no prompt {settings.prompt!r}"
            raise Invalid("unknown_template", detail, templates=sorted(known))
        return self._checked(settings.prompt, known[settings.prompt])

    def stored(self, settings: JudgingSettings) -> Prompt:
        """Return the prompt of settings that were checked when they were stored. Raises GraderFault."""
        try:
            return self.prompt(settings)
        except Invalid as error:
            raise GraderFault("settings_unusable", error.detail) from error

    def _checked(self, name: str, text: str) -> Prompt:
        sides = _PART.split(text)
        if len(sides) != 2:
            raise Invalid("bad_template", f"prompt {name} has no line '---- text ----' between its two sides")
        for where, side, wanted in (("system", sides[0], self.system), ("text", sides[1], self.text)):
            found = frozenset(placeholders.variables(side))
            if found != wanted:
                detail = f"prompt {name}: its {where} side names {sorted(found)}; needed are {sorted(wanted)}"
                raise Invalid("bad_template", detail, placeholders=sorted(wanted))
        return Prompt(name, text, sides[0].strip(), sides[1].strip())


@cache
def _texts(folder: Path) -> dict[str, str]:
    found = {f"{m[1]}@{m[2]}": p for p in sorted(folder.iterdir()) if (m := _FILE.match(p.name))}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}
