"""The shipped catalogue: public models that a project may copy into its own."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from service.domain.models import ModelSpec

_FILE = Path(__file__).with_name("catalogue.toml")


@cache
def shipped() -> dict[str, ModelSpec]:
    """Return the models by name (``provider/id``), in the file's order."""
    content = _read()
    return {name: _spec(content["providers"], name, fields) for name, fields in content["models"].items()}


@cache
def addresses() -> dict[str, str]:
    """Return provider → base URL."""
    return {name: fields["base_url"] for name, fields in _read()["providers"].items()}


def _read() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text())


def _spec(providers: dict[str, Any], name: str, fields: dict[str, Any]) -> ModelSpec:
    provider, _, upstream_id = name.partition("/")
    return ModelSpec.model_validate(
        {"name": name, "provider": provider, "upstream_id": upstream_id, **providers[provider], **fields}
    )
