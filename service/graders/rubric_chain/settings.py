"""Settings of method ``rubric_chain``."""

from typing import Annotated

from pydantic import Field

from service.domain.paths import RelativePath
from service.graders.judging.settings import TEMPLATE, JudgingSettings


class RubricChainSettings(JudgingSettings):
    rubrics: RelativePath = "RUBRICS.json"
    """Hidden asset: ``{"rubrics": [{"rubric", "weight", "criterion": [...]}]}`` (docs/grading.md)."""
    prompt: Annotated[str, Field(pattern=TEMPLATE)] = "rubric_chain@1"
    show_task: bool = True
    """The judge reads what was asked for too."""
