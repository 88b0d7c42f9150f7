"""In which words a model uses the screen: its provider's own computer tool, a plain tool of ours, or tools that the
scaffold's manifest brings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.desktop.vocabularies.contract import Vocabulary
from service.desktop.vocabularies.data import DataVocabulary
from service.desktop.vocabularies.registry import MANIFEST, UNIFIED, default_for, vocabulary_of
from service.desktop.vocabularies.unified import function_tools
from service.domain.desktop import Size
from service.domain.errors import Invalid
from service.models.clients.computers.native import native_vocabularies
from service.models.messages import ToolSpec
from service.scaffolds.computer_use.settings import ComputerSettings
from service.scaffolds.contract import ModelChoice
from service.scaffolds.tool_loop.schema import Tool


@dataclass(frozen=True, slots=True)
class Speech:
    vocabulary: Vocabulary
    native: bool
    """The provider's own tool; else plain ones."""
    model: str
    """As its provider calls it."""

    def image_size(self, screen: Size) -> Size:
        """Return the size in which the model is sent the screen."""
        return self.vocabulary.image_size(screen, self.model)

    def tools(self, screen: Size) -> dict[str, Tool]:
        """Return the plain tools; none where the provider has its own."""
        return {spec.name: Tool(spec, alone=True) for spec in self._specs(screen)}

    def payload(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a call of one of the tools says, as the vocabulary reads it."""
        words = self.vocabulary
        return words.payload(tool, arguments) if isinstance(words, DataVocabulary) else arguments

    def _specs(self, screen: Size) -> Sequence[ToolSpec]:
        if self.native:
            return ()
        if isinstance(self.vocabulary, DataVocabulary):
            return [ToolSpec(t.name, t.description, t.parameters) for t in self.vocabulary.tools]
        return [ToolSpec(f.name, f.description, f.parameters) for f in function_tools(self.image_size(screen))]


def speech_of(model: ModelChoice, settings: ComputerSettings, brought: Mapping[str, Any] | None) -> Speech:
    """``brought``: the manifest's own words. Raises Invalid ``unknown_vocabulary``, ``vocabulary_not_native``,
    ``vocabulary_without_tools``."""
    native = native_vocabularies(model.dialect, chat=settings.chat)
    default = default_for(model.dialect, model.upstream_id, chat=settings.chat) or UNIFIED
    name = settings.vocabulary or (default if brought is None else MANIFEST)
    found = vocabulary_of(name, brought)
    if isinstance(found, DataVocabulary):
        return Speech(_with_tools(found), False, model.upstream_id)
    if name != UNIFIED and name not in native:
        detail = f"settings.vocabulary: the API of model {model.name!r} has no computer tool of vocabulary {name!r}"
        raise Invalid("vocabulary_not_native", detail, vocabularies=[*native, UNIFIED])
    return Speech(found, name in native, model.upstream_id)


def _with_tools(words: DataVocabulary) -> DataVocabulary:
    if not words.tools:
        raise Invalid("vocabulary_without_tools", f"vocabulary {words.name!r} has no tools that a model could call")
    return words
