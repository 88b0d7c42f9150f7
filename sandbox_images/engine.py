"""The engine calls that building needs, with the classic builder (no BuildKit), and typed for the rest."""

import io
import tarfile
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import docker
from docker.errors import APIError, ImageNotFound

from sandbox_images.catalogue import NAME_LABEL, STAGE_LABEL

_BUILD_DEADLINE_S = 1800.0
_QUIET_S = 600
_PROBE_S = 6
_PRUNE_WAIT_S = 120.0
_TAIL_LINES = 40


class BuildFailed(Exception):
    """A build step failed, or the build passed its deadline; the message ends with the last lines of output."""


class Engine:
    """One Docker engine, as the environment names it. Raises docker.errors.DockerException where none answers."""

    def __init__(self) -> None:
        self._client: Any = docker.from_env(timeout=_QUIET_S)

    def image_id(self, tag: str) -> str | None:
        try:
            return cast("str", self._client.images.get(tag).id)
        except ImageNotFound:
            return None

    def pull(self, name: str) -> bool:
        """Pull a public image. False if no registry answers within a few seconds."""
        probe: Any = docker.from_env(timeout=_PROBE_S)
        try:
            probe.api.inspect_distribution(name)
        except (APIError, OSError):
            return False
        finally:
            probe.close()
        repository, _, tag = name.partition(":")
        self._client.images.pull(repository, tag=tag)
        return True

    def tag(self, name: str, new: str) -> None:
        repository, _, tag = new.partition(":")
        self._client.images.get(name).tag(repository, tag=tag)

    def import_root(self, archive: Path, tag: str) -> None:
        """Make an image of a root file system archive."""
        repository, _, version = tag.partition(":")
        changes = ['CMD ["bash"]', f"LABEL {NAME_LABEL}=root"]
        self._client.api.import_image_from_file(str(archive), repository=repository, tag=version, changes=changes)

    def build(
        self, context: Mapping[str, tuple[bytes, int]], tag: str, args: Mapping[str, str], labels: Mapping[str, str]
    ) -> str:
        """Build from ``context`` (path to bytes and mode), printing nothing; return the image id. Raises BuildFailed."""
        stream: Iterable[dict[str, Any]] = self._client.api.build(
            fileobj=pack(context),
            custom_context=True,
            tag=tag,
            buildargs=dict(args),
            labels=dict(labels),
            rm=True,
            forcerm=True,
            decode=True,
        )
        _follow(stream, tag)
        built = self.image_id(tag)
        if built is None:
            raise BuildFailed(f"{tag}: the engine reported success and has no such image")
        return built

    def prune_stages(self) -> None:
        """Remove the left-over images of build stages: they hold what must stay in no image."""
        deadline = time.monotonic() + _PRUNE_WAIT_S
        while True:
            try:
                self._client.images.prune(filters={"dangling": True, "label": f"{STAGE_LABEL}=build"})
                return
            except APIError as error:  # the engine prunes for one caller at a time
                if error.status_code != HTTPStatus.CONFLICT or time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def close(self) -> None:
        self._client.close()


def pack(context: Mapping[str, tuple[bytes, int]]) -> io.BytesIO:
    """A build context as an archive that depends on names, modes and bytes only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(context):
            body, mode = context[name]
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), mode
            archive.addfile(entry, io.BytesIO(body))
    buffer.seek(0)
    return buffer


def _follow(stream: Iterable[dict[str, Any]], tag: str) -> None:
    deadline = time.monotonic() + _BUILD_DEADLINE_S
    tail: list[str] = []
    for message in stream:
        text = str(message.get("stream") or message.get("error") or "").rstrip()
        if text:
            tail = [*tail, text][-_TAIL_LINES:]
        if "error" in message:
            raise BuildFailed(f"{tag}: " + "\n".join(tail))
        if time.monotonic() > deadline:
            raise BuildFailed(f"{tag}: not done after {_BUILD_DEADLINE_S:.0f} s\n" + "\n".join(tail))
