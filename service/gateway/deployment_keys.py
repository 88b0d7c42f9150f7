"""Keys that the operator gives to the gateway itself, by file or environment: no client brings or sees them.

A key goes to the one address that it is for, and works for the projects that it names (``default`` if none is). So a
project cannot have it sent somewhere by an entry of its own catalogue.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from service.domain.credentials import Purpose, Use, may_serve
from service.domain.models import HttpUrl
from service.domain.tasks import Strict
from service.models.catalogue import addresses


class DeploymentKey(Strict):
    key: SecretStr
    base_url: HttpUrl | None = None
    """Of the entries that it is for; null: the provider's address in the shipped catalogue."""
    projects: list[str] = Field(default_factory=lambda: ["default"], min_length=1)
    """Names; ``*`` for every project of the instance."""


_FILE: TypeAdapter[dict[str, dict[str, str | DeploymentKey]]] = TypeAdapter(
    dict[Annotated[str, Field(pattern=r"^(model|judge)$")], dict[str, str | DeploymentKey]]
)


@dataclass(frozen=True, slots=True)
class DeploymentKeys:
    keys: Mapping[tuple[Purpose, str], DeploymentKey]

    def find(self, project: str, provider: str, base_url: str, use: Use) -> str | None:
        """Return the key for a project of this name; null if there is none for this provider, address and use."""
        for purpose in (Purpose.JUDGE, Purpose.MODEL):
            found = self.keys.get((purpose, provider)) if may_serve(purpose, use) else None
            if found is None or (project not in found.projects and "*" not in found.projects):
                continue
            if base_url.rstrip("/") == (found.base_url or addresses().get(provider, "")).rstrip("/"):
                return found.key.get_secret_value()
        return None


def read_deployment_keys(path: Path | None, by_provider: Mapping[str, SecretStr]) -> DeploymentKeys:
    """Read the file (sections ``[model]`` and ``[judge]``) and add the environment's ``provider`` → key.

    Raises ValueError in words that hold no secret, OSError.
    """
    keys = {(Purpose.MODEL, name.lower()): DeploymentKey(key=key) for name, key in by_provider.items()}
    for purpose, section in _sections(path).items():
        for provider, entry in section.items():
            full = entry if isinstance(entry, DeploymentKey) else DeploymentKey(key=SecretStr(entry))
            keys[(Purpose(purpose), provider)] = full
    unknown = sorted({name for (_, name), key in keys.items() if key.base_url is None and name not in addresses()})
    if unknown:
        raise ValueError(f"the key of provider {unknown[0]!r} needs a base_url")
    return DeploymentKeys(keys)


def _sections(path: Path | None) -> dict[str, dict[str, str | DeploymentKey]]:
    if path is None:
        return {}
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} may be read by others: chmod 600 it")
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text())
        return _FILE.validate_python(content)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML") from error
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"])
        raise ValueError(f"{path}: {where} is not [model] or [judge] with provider = key") from None
