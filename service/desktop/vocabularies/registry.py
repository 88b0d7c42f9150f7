"""Vocabularies by name. A module is imported when its vocabulary is first used."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from service.desktop.vocabularies.contract import Vocabulary
from service.desktop.vocabularies.data import loaded
from service.domain.errors import Invalid
from service.domain.models import Dialect

UNIFIED = "workstead.unified"
MANIFEST = "manifest"
"""What an agent's setting calls the vocabulary that its scaffold's manifest brings (``vocabularies.data``)."""
_ANTHROPIC = "service.desktop.vocabularies.anthropic:Anthropic"
_OPENAI = "service.desktop.vocabularies.openai:OpenAi"
VOCABULARIES = {
    "anthropic.20241022": _ANTHROPIC,
    "anthropic.20250124": _ANTHROPIC,
    "anthropic.20251124": _ANTHROPIC,
    "anthropic.computer_toolset_20260801": _ANTHROPIC,
    "openai.computer_use_preview": _OPENAI,
    "openai.computer": _OPENAI,
    "gemini.3_5": "service.desktop.vocabularies.gemini:Gemini35",
    "gemini.legacy": "service.desktop.vocabularies.gemini_legacy:GeminiLegacy",
    "osworld.computer_13": "service.desktop.vocabularies.osworld:OsWorld",
    UNIFIED: "service.desktop.vocabularies.unified:Unified",
}
_NATIVE: tuple[tuple[Dialect, str, str], ...] = (
    (Dialect.ANTHROPIC, r"claude-opus-4[-.]8\b", "anthropic.computer_toolset_20260801"),
    (Dialect.ANTHROPIC, r"claude-[a-z]+-([5-9]|\d\d)\b(?!\d)", "anthropic.computer_toolset_20260801"),
    (Dialect.ANTHROPIC, r"claude-(opus-4[-.][5-7]|sonnet-4[-.][6-9])\b", "anthropic.20251124"),
    (Dialect.ANTHROPIC, r"", "anthropic.20250124"),
    (Dialect.OPENAI, r"\bcomputer-use-preview\b", "openai.computer_use_preview"),
    (Dialect.OPENAI, r"\bgpt-(5\.([4-9]|\d\d)|[6-9])\b(?!.*(nano|chat|codex))", "openai.computer"),
    (Dialect.GEMINI, r"\bgemini-(3\.([5-9]|\d\d)|[4-9])", "gemini.3_5"),
    (Dialect.GEMINI, r"\bgemini-(2\.5-computer-use|3-)", "gemini.legacy"),
)
"""Which vocabulary a model was trained with: dialect, pattern of its id; first match."""


def names() -> list[str]:
    return list(VOCABULARIES)


@cache
def vocabulary(name: str) -> Vocabulary:
    """Return the vocabulary. Raises Invalid ``unknown_vocabulary``."""
    path = VOCABULARIES.get(name)
    if path is None:
        raise Invalid("unknown_vocabulary", f"no vocabulary is called {name[:80]!r}", vocabularies=names())
    module, _, attribute = path.partition(":")
    return cast(Callable[[str], Vocabulary], getattr(import_module(module), attribute))(name)


def vocabulary_of(name: str, document: Mapping[str, Any] | None) -> Vocabulary:
    """Return the vocabulary, ``document`` being what a scaffold's manifest brings: it goes by its own name or ``manifest``.

    Raises Invalid ``unknown_vocabulary``.
    """
    if document is None or name not in (MANIFEST, document.get("name")):
        return vocabulary(name)
    return loaded(document)


def default_for(dialect: Dialect, model_id: str, *, chat: bool = False) -> str | None:
    """Return the native vocabulary of a model; null: it has none, and takes ``workstead.unified`` as a plain tool.

    ``chat``: it is asked by Chat Completions, which have no computer tool.
    """
    if chat:
        return None
    return next((name for of, pattern, name in _NATIVE if of is dialect and re.search(pattern, model_id)), None)
