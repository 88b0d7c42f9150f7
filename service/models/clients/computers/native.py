"""Which computer tools a client of ours speaks natively, and what their calls have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.domain.desktop import SafetyCheck
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.models.messages import ComputerTool, ToolCall

NAME: Final = "computer"
"""Of every call of a native computer tool, whatever the provider calls it."""
TOOLSET: Final = "anthropic.computer_toolset_20260801"
PREVIEW: Final = "openai.computer_use_preview"
COMPUTER: Final = "openai.computer"
GEMINI_LEGACY: Final = "gemini.legacy"
NATIVE: Mapping[Dialect, Sequence[str]] = {
    Dialect.ANTHROPIC: ("anthropic.20241022", "anthropic.20250124", "anthropic.20251124", TOOLSET),
    Dialect.OPENAI: (PREVIEW, COMPUTER),
    Dialect.GEMINI: ("gemini.3_5", GEMINI_LEGACY),
}
MAX_CHECKS = 32
"""Most safety checks of one call."""


def native_vocabularies(dialect: Dialect, *, chat: bool = False) -> Sequence[str]:
    """Return the vocabularies for which the model's API has a tool of its own; Chat Completions has none."""
    return () if chat else NATIVE.get(dialect, ())


def check_native(tool: ComputerTool | None, dialect: Dialect, *, chat: bool = False) -> ComputerTool | None:
    """Return ``tool``. Raises Invalid ``vocabulary_not_native``."""
    known = native_vocabularies(dialect, chat=chat)
    if tool is not None and tool.vocabulary not in known:
        detail = f"this model's API has no computer tool of vocabulary {tool.vocabulary!r}"
        raise Invalid("vocabulary_not_native", detail, known=list(known))
    return tool


def computer_call(
    id: str, arguments: dict[str, Any] | None, vocabulary: str, checks: Sequence[SafetyCheck] = (), raw: str = ""
) -> ToolCall:
    return ToolCall(id=id, name=NAME, arguments=arguments, raw=raw, vocabulary=vocabulary, checks=list(checks))


def safety_checks(found: Sequence[Mapping[str, Any]]) -> list[SafetyCheck]:
    """Return the checks, cut to what may be kept. One without an id is kept too: nobody may overlook it."""
    return [
        SafetyCheck(
            id=str(check.get("id") or "")[:200],
            code=str(check.get("code") or "")[:200],
            message=str(check.get("message") or "")[:4000],
        )
        for check in found[:MAX_CHECKS]
    ]
