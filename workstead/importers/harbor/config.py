"""``task.toml`` and the older ``task.yaml`` in one form. What we do not know of them is passed over, as their own reader does."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import complaints
from workstead.importers.harbor.flat_yaml import Value, read_flat
from workstead.task_dir import read_text

TOML, YAML = "task.toml", "task.yaml"
MIB = 1 << 20
_UNITS = {"K": 1 << 10, "M": MIB, "G": 1 << 30, "T": 1 << 40}
_WANTED = (
    *("instruction", "difficulty", "category", "tags", "parser_name", "max_agent_timeout_sec"),
    "max_test_timeout_sec",
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


_Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
_Env = Annotated[
    dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], Annotated[str, Field(max_length=4_096)]],
    Field(max_length=32),
]


class _Environment(_Part):
    docker_image: str | None = Field(default=None, max_length=500)
    cpus: Annotated[float, Field(gt=0, le=1_024)] | None = None
    memory_mb: Annotated[float, Field(gt=0, le=1 << 24)] | None = None
    storage_mb: Annotated[float, Field(gt=0, le=1 << 30)] | None = None
    memory: str | None = Field(default=None, max_length=32)
    storage: str | None = Field(default=None, max_length=32)
    gpus: Annotated[float, Field(ge=0)] | None = None
    allow_internet: bool = True
    os: str | None = None
    env: dict[str, Any] = Field(default_factory=dict[str, Any])
    mcp_servers: list[Any] = Field(default_factory=list[Any])
    healthcheck: Any = None


class _Timed(_Part):
    timeout_sec: _Seconds | None = None


class _Verifier(_Timed):
    env: _Env = Field(default_factory=dict[str, str])
    environment_mode: str | None = None
    environment: Any = None


class _Toml(_Part):
    version: str | None = None
    schema_version: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    verifier: _Verifier = Field(default_factory=_Verifier)
    agent: _Timed = Field(default_factory=_Timed)
    environment: _Environment = Field(default_factory=_Environment)
    steps: list[Any] = Field(default_factory=list[Any])


@dataclass(slots=True)
class Config:
    limits: dict[str, float] = field(default_factory=dict[str, float])
    verifier_s: float = 600.0
    verifier_env: dict[str, str] = field(default_factory=dict[str, str])
    docker_image: str | None = None
    internet: bool = True
    facets: dict[str, Any] = field(default_factory=dict[str, Any])
    instruction: str | None = None
    """Null: it lies in a file of its own."""
    needs: list[str] = field(default_factory=list[str])
    """What the task asks for that we have not, in words."""
    env_names: list[str] = field(default_factory=list[str])
    by_pytest: bool = False
    """An older task, which is judged by what pytest says."""


def read_config(folder: Path, draft: Draft) -> Config | None:
    """Return the configuration; null, with the reason on the draft, where there is none that can be read."""
    name = TOML if (folder / TOML).exists() else YAML
    problems: list[str] = []
    text = read_text(folder / name, name, problems)
    for problem in problems:
        draft.quarantine("bad_task_file", name, problem.removeprefix(f"{name}: "))
    if text is None or problems:
        return None
    try:
        if name == YAML:
            return _of_yaml(read_flat(text, _WANTED))
        return _of_toml(_Toml.model_validate(tomllib.loads(text)))
    except ValidationError as error:
        for where, what in complaints(error):
            draft.quarantine("bad_task_file", f"{name}#{where}", what)
    except (ValueError, RecursionError) as error:
        draft.quarantine("bad_task_file", name, str(error))
    return None


def _of_toml(given: _Toml) -> Config:
    """Raises ValueError."""
    env = given.environment
    sizes = {
        "memory_bytes": _bytes(env.memory_mb, env.memory),
        "disk_bytes": _bytes(env.storage_mb, env.storage),
        "cpus": env.cpus,
        "wall_clock_s": given.agent.timeout_sec,
    }
    return Config(
        limits={name: value for name, value in sizes.items() if value is not None},
        verifier_s=given.verifier.timeout_sec or 600.0,
        verifier_env=given.verifier.env,
        docker_image=env.docker_image,
        internet=env.allow_internet,
        facets=_facets(given.metadata),
        needs=list(_needs(given)),
        env_names=sorted(env.env),
    )


def _of_yaml(given: Mapping[str, Value]) -> Config:
    """Raises ValueError."""
    parser = given.get("parser_name", "pytest")
    instruction, agent_s, test_s = (given.get(n) for n in ("instruction", *_WANTED[5:]))
    if not isinstance(instruction, str):
        raise ValueError("has no instruction")
    return Config(
        limits={} if agent_s is None else {"wall_clock_s": _seconds(agent_s)},
        verifier_s=600.0 if test_s is None else _seconds(test_s),
        facets=_facets(given),
        instruction=instruction,
        needs=[] if parser == "pytest" else [f"a reader of the output of {parser!r}, in place of pytest's"],
        by_pytest=True,
    )


def _seconds(value: Value) -> float:
    seconds = float(value) if isinstance(value, str) else 0.0
    if not 0 < seconds <= 7 * 86_400:
        raise ValueError("a time limit is not between 0 and 7 days")
    return seconds


def _bytes(megabytes: float | None, text: str | None) -> float | None:
    if megabytes is not None:
        return float(int(megabytes * MIB))
    if text is None:
        return None
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), MIB
    if number and number[-1] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    size = float(number) * unit
    if not 0 < size < 1 << 50:
        raise ValueError(f"{text[:32]!r} is no size")
    return float(int(size))


def _needs(given: _Toml) -> Iterator[str]:
    env, verifier = given.environment, given.verifier
    if env.gpus:
        yield "a GPU"
    if env.os not in (None, "linux"):
        yield f"the system {str(env.os)[:40]!r}"
    if env.mcp_servers:
        yield "MCP servers beside the sandbox"
    if env.healthcheck is not None:
        yield "a service that is started before the agent"
    if given.steps:
        yield "several steps in one sandbox"
    if verifier.environment_mode not in (None, "shared") or verifier.environment is not None:
        yield "an image of its own for the verifier"
    if any("${" in value for value in verifier.env.values()):
        yield "secrets of its operator in the verifier, to reach something over the network"


def _facets(given: Mapping[str, Any]) -> dict[str, Any]:
    tags = given.get("tags")
    texts = (
        [t for t in cast("list[Any]", tags) if isinstance(t, str) and 0 < len(t) <= 200]
        if isinstance(tags, list)
        else []
    )
    named = {n: given.get(n) for n in ("difficulty", "category")}
    facets: dict[str, Any] = {n: v for n, v in named.items() if isinstance(v, str) and 0 < len(v) <= 200}
    return {**facets, **({"tags": texts[:64]} if texts else {})}
