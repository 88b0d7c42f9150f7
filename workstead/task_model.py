"""The manifest of a task as the service takes it, for checking without a service. A test compares it with the service's."""

from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _clean(path: str) -> str:
    if not path or len(path.encode(errors="surrogatepass")) > 1024:
        raise ValueError("a path has 1 to 1 024 bytes")
    if any(ord(c) < 32 or c in "\\\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in path):
        raise ValueError("a path has no backslash, control character or surrogate")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("a path is relative and has no empty, '.' or '..' component")
    return path


RelativePath = Annotated[str, AfterValidator(_clean)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")]
Money = Annotated[str, Field(pattern=r"^\d{1,15}(\.\d{1,6})?$")]
Facet = str | float | list[str]


class FileRef(Strict):
    path: RelativePath
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: int = Field(ge=0)


class Limits(Strict):
    wall_clock_s: float = Field(default=3600, gt=0, le=7 * 86_400)
    grace_s: float = Field(default=10, ge=0, le=600)
    memory_bytes: int = Field(default=2 * GIB, ge=64 * MIB, le=256 * GIB)
    cpus: float = Field(default=1.0, ge=0.1, le=64)
    pids: int = Field(default=512, ge=16, le=8192)
    disk_bytes: int = Field(default=10 * GIB, ge=16 * MIB, le=512 * GIB)
    inodes: int = Field(default=200_000, ge=1_000, le=10_000_000)
    shm_bytes: int = Field(default=64 * MIB, ge=MIB, le=8 * GIB)
    deliverable_bytes: int = Field(default=5 * GIB, ge=1, le=64 * GIB)
    deliverable_files: int = Field(default=20_000, ge=1, le=1_000_000)


class Price(Strict):
    amount: Money
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    usd: Money | None = None
    basis: Literal["posted", "midpoint", "reported", "estimated", "imputed"]
    min: Money | None = None
    max: Money | None = None
    rate_type: Literal["fixed", "hourly"] = "fixed"
    rate_date: date | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        low, high = Decimal(self.min or self.amount), Decimal(self.max or self.amount)
        if not low <= Decimal(self.amount) <= high:
            raise ValueError("a price has min ≤ amount ≤ max")
        return self


HostPattern = Annotated[
    str, Field(pattern=r"^(\*\.)?[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))*$", max_length=253)
]


FACTS_BYTES = 1 << 20


class ClientSpec(Strict):
    facts: RelativePath | None = None
    max_messages: int = Field(default=5, ge=1, le=100)
    model: Name | None = None


class GraderSpec(Strict):
    method: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    settings: dict[str, Any] = Field(default_factory=dict)


class TaskManifest(Strict):
    name: Name
    instruction: str = Field(min_length=1, max_length=200_000)
    visible: list[FileRef] = Field(default_factory=list[FileRef], max_length=10_000)
    hidden: list[FileRef] = Field(default_factory=list[FileRef], max_length=10_000)
    environment: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9._/:@-]{0,254}|img_[0-9A-Z]{26})$")] = "base"
    collect: list[RelativePath] = Field(default_factory=lambda: ["output"], min_length=1, max_length=16)
    limits: Limits = Field(default_factory=Limits)
    network: Literal["none", "allowlist", "web"] = "none"
    allow_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=1000)
    deny_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=1000)
    client: ClientSpec | None = None
    graders: list[GraderSpec] = Field(default_factory=list[GraderSpec], max_length=16)
    facets: dict[str, Facet] = Field(default_factory=dict[str, Facet], max_length=64)
    price: Price | None = None
    human_time_s: float | None = Field(default=None, ge=0)
    labels: Annotated[dict[str, str], Field(max_length=32)] = Field(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _paths(self) -> Self:
        roots = sorted(self.collect)
        if any(b == a or b.startswith(a + "/") for a, b in pairwise(roots)):
            raise ValueError("collect roots must not contain one another")
        if any(f.path.split("/")[0] == ".home" for f in self.visible):
            raise ValueError("the path .home is reserved")
        facts = None if self.client is None else self.client.facts
        found = next((f for f in self.hidden if f.path == facts), None)
        if facts is not None and found is None:
            raise ValueError(f"client.facts {facts!r} is not among the hidden files")
        if found is not None and found.size_bytes > FACTS_BYTES:
            raise ValueError(f"client.facts has more than {FACTS_BYTES} bytes")
        return self


def manifest_problems(manifest: dict[str, Any]) -> list[str]:
    """Return what is wrong with a manifest, each with its pointer; what only the service can know is not looked at."""
    try:
        parsed = TaskManifest.model_validate(manifest)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return ["/" + "/".join(map(str, e["loc"])) + ": " + e["msg"].removeprefix("Value error, ") for e in found]
    hidden = {ref.path for ref in parsed.hidden}
    named = ((i, _hidden_file(spec)) for i, spec in enumerate(parsed.graders))
    return [f"/graders/{i}/settings: hidden/{name} is not there" for i, name in named if name and name not in hidden]


def _hidden_file(spec: GraderSpec) -> str | None:
    """Return the hidden file that a grader's settings name, for the methods that name one."""
    if spec.method == "test_cases":
        name = spec.settings.get("tests", "tests.json")
    else:
        expected: Any = spec.settings.get("expected") if spec.method == "exact" else None
        name = expected.get("hidden") if isinstance(expected, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return name if isinstance(name, str) else None
