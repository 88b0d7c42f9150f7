"""What the profile is built from beside the spec: facts about the host, the image and this sandbox's own names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

LABEL_PREFIX = "org.workstead."
DEPLOYMENT_LABEL = LABEL_PREFIX + "deployment"
SANDBOX_LABEL = LABEL_PREFIX + "sandbox"
IMAGE_LABEL = LABEL_PREFIX + "image"


def words(value: object) -> list[str]:
    """Return the words of an untyped list, or the names of an untyped object, of the engine; none if it is absent."""
    return [str(v) for v in cast("Iterable[object]", value)] if isinstance(value, list | dict) else []


@dataclass(frozen=True, slots=True)
class HostFacts:
    cgroup_version: int
    engine_id: str
    memory_bytes: int = 0
    cpus: int = 0
    engine_root: str = ""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> "HostFacts":
        return cls(
            cgroup_version=int(info.get("CgroupVersion") or 1),
            engine_id=str(info.get("ID") or ""),
            memory_bytes=int(info.get("MemTotal") or 0),
            cpus=int(info.get("NCPU") or 0),
            engine_root=str(info.get("DockerRootDir") or ""),
        )


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What of an image's own metadata would reach a container, so that the profile can override it."""

    id: str
    env_names: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    interpreter: str | None = None
    """Absolute path of a Python inside, where one was found."""
    musl: bool = False
    """Its C library is musl, and it has no glibc beside it."""


@dataclass(frozen=True, slots=True)
class KitFacts:
    """What of a kit decides where it can run."""

    interpreter: str | None = None
    """Absolute path of its own Python."""
    any_library: bool = False
    """It brings its loader and C library, or says that it needs none: it runs whatever the environment has."""


@dataclass(frozen=True, slots=True)
class Placement:
    """This sandbox's own names on the host."""

    deployment: str
    sandbox_id: str
    control_dir: str
    """Directory of the launcher's socket and program, mounted read-only."""
    workspace_volume: str
    interpreter: tuple[str, ...] = field(default=())
    kit_volume: str | None = None

    @property
    def container_name(self) -> str:
        return f"{self.deployment}-{self.sandbox_id}"
