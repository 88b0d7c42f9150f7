"""Scenarios from a TOML file: tables ``[[scenario]]`` with the fields of :class:`Scenario`."""

import tomllib
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from service.domain.errors import Invalid
from service.models.scripted.scenario import Scenario

_SCENARIOS = TypeAdapter(list[Scenario])


def load(path: Path) -> list[Scenario]:
    """Raises Invalid: no such file, no TOML, or not scenarios."""
    try:
        return _SCENARIOS.validate_python(tomllib.loads(path.read_text()).get("scenario", []))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise Invalid("bad_scenarios", f"{path}: {error}") from error
