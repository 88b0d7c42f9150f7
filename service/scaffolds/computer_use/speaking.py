"""In which words a model uses the screen: by its provider's own computer tool, or by a plain tool of ours."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.desktop.vocabularies.contract import Vocabulary
from service.desktop.vocabularies.registry import UNIFIED, default_for, vocabulary
from service.desktop.vocabularies.unified import FunctionTool, function_tools
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
    """The provider's own tool; else a plain one."""
    model: str
    """As its provider calls it."""

    def image_size(self, screen: Size) -> Size:
        """Return the size in which the model is sent the screen."""
        return self.vocabulary.image_size(screen, self.model)

    def tools(self, screen: Size) -> dict[str, Tool]:
        """Return the plain tools; none where the provider has its own."""
        found: Sequence[FunctionTool] = () if self.native else function_tools(self.image_size(screen))
        return {f.name: Tool(ToolSpec(f.name, f.description, f.parameters), alone=True) for f in found}


def speech_of(model: ModelChoice, settings: ComputerSettings) -> Speech:
    """Raises Invalid ``unknown_vocabulary``, ``vocabulary_not_native``."""
    native = native_vocabularies(model.dialect, chat=settings.chat)
    default = default_for(model.dialect, model.upstream_id, chat=settings.chat)
    name = settings.vocabulary or default or UNIFIED
    found = vocabulary(name)
    if name != UNIFIED and name not in native:
        detail = f"settings.vocabulary: the API of model {model.name!r} has no computer tool of vocabulary {name!r}"
        raise Invalid("vocabulary_not_native", detail, vocabularies=[*native, UNIFIED])
    return Speech(found, name in native, model.upstream_id)
