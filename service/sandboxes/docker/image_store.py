"""Images that clients brought, on this host's engine: loaded from archives that this module writes.

What came was looked at part by part before. The engine is given a new archive with those parts and one name of ours,
and is asked afterwards what it made of it: an image is there only if its layers are the ones that were looked at.
"""

import json
import tarfile
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from service.domain.images import ImageContent
from service.sandboxes.contract import SandboxGone, SandboxRefused
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import words
from service.sandboxes.docker.images import BROUGHT, check_acceptable, engine_tag

PIECE = 1 << 20
PathOf = Callable[[str], Path]
"""Where the blob of a digest lies."""


class ImageStore:
    """``forget`` is told of an image id before it is removed: what waits in it has to go first."""

    def __init__(
        self, engine: Engine, deployment: str, path_of: PathOf, forget: Callable[[str], Awaitable[None]]
    ) -> None:
        self._engine = engine
        self._forget = forget
        self._deployment = deployment
        self._path_of = path_of

    async def tags(self) -> set[str]:
        """Return what the engine has, as ``ImageContent.tag``. Raises EngineError."""
        own = engine_tag(self._deployment, BROUGHT)
        found = await self._engine.named_images(own.removesuffix(":"))
        tags = [tag for image in found for tag in words(image.get("RepoTags")) if tag.startswith(own)]
        return {BROUGHT + tag.removeprefix(own) for tag in tags}

    async def load(self, content: ImageContent) -> None:
        """Load an image if the engine does not have it. Raises SandboxRefused (it is not what it should be), EngineError."""
        if not await self._is_there(content):
            await self._engine.load_image(archive_of(content, self._tag(content.tag), self._path_of))
            if not await self._is_there(content):
                raise SandboxRefused("image_refused", "the engine did not make of it what was looked at")

    async def remove(self, tag: str) -> None:
        """Remove an image; one that a sandbox uses stays. Raises EngineError."""
        try:
            found = await self._engine.inspect_image(self._tag(tag))
            await self._forget(str(found["Id"]))
            await self._engine.remove_image(self._tag(tag))
        except SandboxGone:
            return

    async def _is_there(self, content: ImageContent) -> bool:
        try:
            found = await self._engine.inspect_image(self._tag(content.tag))
        except SandboxGone:
            return False
        check_acceptable(found)
        rootfs: dict[str, Any] = found.get("RootFS") or {}
        return words(rootfs.get("Layers")) == [f"sha256:{layer.sha256}" for layer in content.layers]

    def _tag(self, tag: str) -> str:
        return engine_tag(self._deployment, tag)


def archive_of(content: ImageContent, tag: str, path_of: PathOf) -> Generator[bytes]:
    """Yield an archive of one image under one name, as ``docker load`` takes it. Blocks. Raises OSError."""
    names = [f"{number:03}/layer.tar" for number in range(len(content.layers))]
    config = f"{content.config}.json"
    manifest = json.dumps([{"Config": config, "RepoTags": [tag], "Layers": names}]).encode()
    yield _header("manifest.json", len(manifest))
    yield _padded(manifest)
    yield _header(config, content.config_bytes)
    yield from _body(path_of(content.config), content.config_bytes)
    for name, layer in zip(names, content.layers, strict=True):
        yield _header(name, layer.size_bytes)
        yield from _body(path_of(layer.sha256), layer.size_bytes)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def _body(path: Path, size: int) -> Generator[bytes]:
    left = size
    with path.open("rb") as file:
        while left:
            data = file.read(min(PIECE, left))
            if not data:
                raise OSError(f"blob {path.name} is shorter than it was")
            left -= len(data)
            yield data
    yield bytes(-size % tarfile.BLOCKSIZE)
