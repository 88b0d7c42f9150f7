"""Settings of a method from what a task or a plan says. One place for all methods."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from service.domain.errors import Invalid
from service.graders.contract import GraderFault

S = TypeVar("S", bound=BaseModel)


def parsed(model: type[S], settings: Mapping[str, Any]) -> S:
    """Return the settings. Raises Invalid ``bad_grader_settings`` with every problem and its place."""
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        problems = [{"at": list(e["loc"]), "message": e["msg"]} for e in error.errors(include_url=False)]
        raise Invalid("bad_grader_settings", str(problems[0]["message"]), problems=problems) from error


def stored(model: type[S], settings: Mapping[str, Any]) -> S:
    """Return settings that were checked when they were stored. Raises GraderFault ``settings_unusable``."""
    try:
        return parsed(model, settings)
    except Invalid as error:
        raise GraderFault("settings_unusable", error.detail) from error
