"""How much a grading will ask of judges, known before it is made: for estimates. One place for all methods with judges."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

from service.graders import strict_json
from service.graders.contract import GraderFault
from service.graders.judging.settings import JudgingSettings
from service.graders.parsing import parsed

_SETTINGS = {
    "rubric_chain": "service.graders.rubric_chain.settings:RubricChainSettings",
    "llm_panel": "service.graders.llm_panel.settings:LlmPanelSettings",
    "pairwise": "service.graders.pairwise.settings:PairwiseSettings",
}
_RUBRICS = "rubrics"
"""Setting that names the hidden file of what is asked one by one."""


def settings_of(method: str, settings: Mapping[str, Any]) -> JudgingSettings | None:
    """Return the settings as the method reads them; None for a method without judges. Raises Invalid."""
    model = _model(method)
    return None if model is None else parsed(model, settings)


def most_chars(settings: JudgingSettings) -> int:
    """Return how much delivered text one question may hold."""
    return settings.opening_chars if settings.reading == "opening" else settings.evidence_chars


def items(settings: JudgingSettings, open_hidden: Callable[[str], BinaryIO]) -> int | None:
    """Return about how many questions each judge is asked per vote; None where the hidden asset does not say."""
    path = getattr(settings, _RUBRICS, None)
    if path is None:
        return 1
    try:
        with open_hidden(str(path)) as stream:
            found = strict_json.read_object(stream)
    except (strict_json.NotUsable, GraderFault, OSError):
        return None
    listed = found.get("rubrics", found.get("evaluation_rubrics"))
    return len(listed) if isinstance(listed, list) and listed else None  # pyright: ignore[reportUnknownArgumentType]


@cache
def _model(method: str) -> type[JudgingSettings] | None:
    path = _SETTINGS.get(method)
    if path is None:
        return None
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
