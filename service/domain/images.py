"""Images that clients bring: what one is made of, what is told of it, and what no override makes harmless (NEEDS C2)."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from posixpath import normpath
from typing import Annotated, Any, cast

from pydantic import Field

from service.domain.errors import Invalid
from service.domain.limits import GIB, MIB
from service.domain.tasks import Sha256, Strict

ID = re.compile(r"img_[0-9A-Z]{26}")
MAX_IMAGE_BYTES = 16 * GIB
"""Of all layers, unpacked."""
MAX_LAYERS = 125
"""What overlay file systems stack."""
MAX_ENTRIES = 1_000_000
"""Files, folders and links of all layers."""
MAX_CONFIG_BYTES = 4 * MIB
MAX_VOLUMES = 16
MAX_ENV = 256
PLATFORM = ("linux", "amd64")
SHOWN_FILES = 50
_SHOWN_CHARS = 500
_FORBIDDEN_DIRS = ("/proc", "/sys", "/dev")
_REFERENCE = re.compile(
    r"(?P<host>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?)"
    r"/(?P<name>[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)@sha256:(?P<digest>[0-9a-f]{64})"
)

ImageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._/-]{0,127}$")]


class ImageState(StrEnum):
    PENDING = "pending"
    """Its import has not ended."""
    READY = "ready"
    REFUSED = "refused"


class Layer(Strict):
    sha256: Sha256
    """Of the unpacked layer: its blob, and what the image's configuration calls it."""
    size_bytes: int = Field(ge=0)


class ImageContent(Strict):
    """What an image is made of, all of it blobs."""

    config: Sha256
    config_bytes: int = Field(ge=0)
    layers: list[Layer] = Field(max_length=MAX_LAYERS)

    @property
    def tag(self) -> str:
        """Under this name hosts load it. Not below ``workstead/``: names there are trusted."""
        return f"workstead-image:{self.config}"

    @property
    def size_bytes(self) -> int:
        return self.config_bytes + sum(layer.size_bytes for layer in self.layers)


class Reference(Strict):
    """An image in a registry, by digest: a tag may move."""

    host: str
    name: str
    digest: Sha256

    @classmethod
    def of(cls, text: str) -> "Reference":
        """Raises Invalid ``bad_reference``."""
        found = _REFERENCE.fullmatch(text)
        if found is None:
            raise Invalid("bad_reference", "an image is named as host[:port]/name@sha256:digest, all of it")
        return cls(host=found["host"], name=found["name"], digest=found["digest"])


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse metadata that no override makes harmless (or that nobody sane has). Raises Invalid ``image_refused``."""
    _check_path("WORKDIR", str(config.get("WorkingDir") or "/"))
    volumes = words(config.get("Volumes"))
    if len(volumes) > MAX_VOLUMES or len(words(config.get("Env"))) > MAX_ENV:
        raise Invalid("image_refused", f"over {MAX_VOLUMES} volumes or {MAX_ENV} variables")
    for path in volumes:
        _check_path("VOLUME", path)
        if path == "/" or any(path.startswith(p) for p in ("/run/workstead", "/workspace/", "/opt/kit/")):
            raise Invalid("image_refused", f"VOLUME {path!r} lies over a path of ours")
    if config.get("OnBuild"):
        raise Invalid("image_refused", "ONBUILD instructions are not accepted")


def check_platform(document: Mapping[str, Any]) -> None:
    """Raises Invalid ``image_wrong_platform``."""
    found = (str(document.get("os") or ""), str(document.get("architecture") or ""))
    if found != PLATFORM:
        have, want = ("/".join(words)[:100] for words in (found, PLATFORM))
        raise Invalid("image_wrong_platform", f"the image is for {have!r}, sandboxes are {want}", platform=have)


def overridden(config: Mapping[str, Any]) -> list[str]:
    """Return, in words, what of an image's metadata a sandbox does not heed."""
    rules: Sequence[tuple[str, str]] = (
        ("User", "USER {}: everything runs as 10001:10001"),
        ("Entrypoint", "ENTRYPOINT {}: never run"),
        ("Cmd", "CMD {}: never run"),
        ("WorkingDir", "WORKDIR {}: programs start in /workspace"),
        ("Volumes", "VOLUME {}: a small scratch folder, emptied at the end"),
        ("Env", "ENV {}: emptied; PATH, HOME, LANG and TZ are ours"),
        ("ExposedPorts", "EXPOSE {}: there is no network to expose it to"),
        ("Healthcheck", "HEALTHCHECK: switched off"),
        ("StopSignal", "STOPSIGNAL {}: the container is killed"),
        ("Shell", "SHELL {}: heeded in builds only"),
        ("Labels", "LABEL {}: those in our name space are emptied"),
    )
    return [words_of.format(_told(config[name])) for name, words_of in rules if config.get(name)]


def words(value: object) -> list[str]:
    """Return the words of an untyped list, or the names of an untyped object; none if it is absent."""
    return [str(v) for v in cast("Sequence[object]", value)] if isinstance(value, list | dict) else []


def _told(value: object) -> str:
    listed = [word.partition("=")[0] for word in words(value)]
    return short(" ".join(listed) if listed else str(value))


def short(text: str) -> str:
    """Return text of an image as it may be shown: printable, bounded in length."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:_SHOWN_CHARS])
    return shown + ("…" if len(text) > _SHOWN_CHARS else "")


def _check_path(what: str, path: str) -> None:
    under = any(path == d or path.startswith(d + "/") for d in _FORBIDDEN_DIRS)
    if not path.startswith("/") or normpath(path) != path or under or len(path) > 255:
        raise Invalid("image_refused", f"{what} {path!r} is not a clean absolute path outside /proc, /sys, /dev")
    if not path.isprintable() or any(c in path for c in ":,;'\"\\"):
        raise Invalid("image_refused", f"{what} {path!r} holds characters that are not accepted")
