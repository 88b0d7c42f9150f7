"""Tasks: immutable, versioned bundles identified by the digest of their canonical manifest."""

import hashlib
import json
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.domain.limits import Limits
from service.domain.paths import RelativePath

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")]
FacetName = Annotated[str, Field(min_length=1, max_length=128)]
"""Of a task's own facet, or ``name@version`` of annotations."""
Facet = str | float | list[str]
LABELS = Annotated[dict[str, str], Field(max_length=32)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class FileRef(Strict):
    """A file by content: where it lies, relative to the workspace (visible) or to the hidden bundle."""

    path: RelativePath
    sha256: Sha256
    size_bytes: int = Field(ge=0)


class NetworkPolicy(StrEnum):
    NONE = "none"
    """The model gateway only."""
    ALLOWLIST = "allowlist"
    """And the hosts that the task names."""
    WEB = "web"
    """Any public http or https host but those that the task denies."""


HostPattern = Annotated[
    str, Field(pattern=r"^(\*\.)?[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))*$", max_length=253)
]
"""A lower-case host name, or ``*.`` and a suffix, which does not match the suffix itself."""


Money = Annotated[str, Field(pattern=r"^\d{1,15}(\.\d{1,6})?$")]
"""A decimal as text, so that nothing rounds it."""


class Price(Strict):
    """What the work is worth (NEEDS A15). ``amount``, ``min`` and ``max`` are in ``currency``."""

    amount: Money
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    usd: Money | None = None
    """The amount in US dollars; null where no rate is known."""
    basis: Literal["posted", "midpoint", "reported", "estimated", "imputed"]
    min: Money | None = None
    max: Money | None = None
    rate_type: Literal["fixed", "hourly"] = "fixed"
    rate_date: date | None = None
    """Day of the rate that ``usd`` was computed with."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        low, high = Decimal(self.min or self.amount), Decimal(self.max or self.amount)
        if not low <= Decimal(self.amount) <= high:
            raise ValueError("a price has min ≤ amount ≤ max")
        return self


FACTS_BYTES = 1 << 20
"""Most bytes of what a simulated client knows."""


class ClientSpec(Strict):
    """A simulated client that the agent may ask (NEEDS, PayWorthy's tool agent)."""

    facts: RelativePath | None = None
    """Hidden file with what only the client knows, up to 1 MiB; null: a model makes it once, before the first run
    (``POST /v1/tasks/{id}/client-facts``)."""
    max_messages: int = Field(default=5, ge=1, le=100)
    model: Name | None = None
    """Catalogue name of the model that plays the client; null: the agent's own."""


class GraderSpec(Strict):
    """A grading method with its settings; the settings are checked by the method itself."""

    method: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    settings: dict[str, Any] = Field(default_factory=dict)


class TaskManifest(Strict):
    """What a client uploads: everything of a task but the bytes of its files."""

    name: Name
    instruction: str = Field(min_length=1, max_length=200_000)
    visible: list[FileRef] = Field(default_factory=list[FileRef], max_length=10_000)
    """Files that the agent sees, at these paths below /workspace."""
    hidden: list[FileRef] = Field(default_factory=list[FileRef], max_length=10_000)
    """Reference solutions, answers, rubrics. Never mounted, copied or named into an agent's sandbox."""
    environment: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9._/:@-]{0,254}|img_[0-9A-Z]{26})$")] = "base"
    """An image of the project's own (``/v1/images``, id or name), or the name of a shipped one."""
    collect: list[RelativePath] = Field(default_factory=lambda: ["output"], min_length=1, max_length=16)
    """Roots below /workspace that are sealed into the deliverable."""
    limits: Limits = Field(default_factory=Limits)
    network: NetworkPolicy = NetworkPolicy.NONE
    allow_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=1000)
    """Hosts that network policy ``allowlist`` lets through."""
    deny_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=1000)
    """Hosts that ``web`` and provider-side search never reach: where the answers lie (NEEDS A3)."""
    client: ClientSpec | None = None
    graders: list[GraderSpec] = Field(default_factory=list[GraderSpec], max_length=16)
    facets: dict[str, Facet] = Field(default_factory=dict[str, Facet], max_length=64)
    price: Price | None = None
    human_time_s: float | None = Field(default=None, ge=0)
    labels: LABELS = Field(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _paths_do_not_clash(self) -> Self:
        for files in (self.visible, self.hidden):
            _check_tree([f.path for f in files])
        roots = sorted(self.collect)
        if any(b == a or b.startswith(a + "/") for a, b in pairwise(roots)):
            raise ValueError("collect roots must not contain one another")
        reserved = [f.path for f in self.visible if f.path.split("/")[0] == ".home"]
        if reserved:
            raise ValueError(f"the path .home is reserved: {reserved[0]!r}")
        facts = self.imported_facts()
        if self.client is not None and self.client.facts is not None and facts is None:
            raise ValueError(f"client.facts {self.client.facts!r} is not among the hidden files")
        if facts is not None and facts.size_bytes > FACTS_BYTES:
            raise ValueError(f"client.facts has more than {FACTS_BYTES} bytes")
        return self

    def imported_facts(self) -> FileRef | None:
        """Return the hidden file with what only the client knows; null: none was brought."""
        wanted = None if self.client is None else self.client.facts
        return next((f for f in self.hidden if f.path == wanted), None)

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON form: the task's version."""
        body = self.model_dump(mode="json")
        # Fields of later versions, left out while they say nothing: a bundle keeps the digest that it was stored under.
        return canonical_digest({k: v for k, v in body.items() if k not in _LATER or v})


_LATER = frozenset({"allow_hosts", "deny_hosts", "client"})


def canonical_digest(value: Any) -> str:
    """Return the sha256 of ``value`` as JSON with sorted keys, no spaces, non-ASCII kept as UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_tree(paths: list[str]) -> None:
    seen = set(paths)
    if len(seen) != len(paths):
        raise ValueError("two files have the same path")
    for path in paths:
        parent = path
        while "/" in parent:
            parent = parent.rpartition("/")[0]
            if parent in seen:
                raise ValueError(f"{parent!r} is both a file and a directory")
