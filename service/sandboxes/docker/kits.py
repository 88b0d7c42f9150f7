"""Kit volumes: a kit image's /opt/kit, copied once per image id into a volume that sandboxes mount read-only.

The engine fills a fresh named volume from the image when a container that mounts it is *created*; that container is
never started. A marker file says that the copy came to its end: without it the volume is made anew.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from service.sandboxes.contract import EngineError, SandboxGone, SandboxRefused
from service.sandboxes.docker.engine import FILL_S, Engine
from service.sandboxes.docker.facts import LABEL_PREFIX
from service.sandboxes.docker.images import Images
from service.sandboxes.docker.profile import KIT
from service.sandboxes.docker.unstarted import unstarted

KIT_LABEL = LABEL_PREFIX + "kit"


class Kits:
    def __init__(self, engine: Engine, images: Images, data_dir: Path, deployment: str) -> None:
        self._engine = engine
        self._images = images
        self._dir = data_dir / "kits"
        self._deployment = deployment
        self._locks: dict[str, asyncio.Lock] = {}

    async def volume(self, image_id: str) -> str:
        """Return the name of the filled volume of a kit image. Raises SandboxRefused, EngineError."""
        name = f"{self._deployment}-kit-{image_id.removeprefix('sha256:')[:16]}"
        async with self._locks.setdefault(name, asyncio.Lock()):
            marker = self._dir / name
            if not (marker.exists() and await self._exists(name)):
                marker.unlink(missing_ok=True)
                await self._fill(name, image_id)
                self._dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                marker.write_text(image_id, encoding="utf-8")
        return name

    async def prune(self) -> None:
        """Remove the volumes of images that the engine no longer has; one that a sandbox still uses stays."""
        for marker in sorted(self._dir.glob(f"{self._deployment}-kit-*")) if self._dir.is_dir() else []:
            if await self._images.known(marker.read_text(encoding="utf-8").strip()):
                continue
            with suppress(EngineError):
                with suppress(SandboxGone):
                    await self._engine.remove_volume(marker.name)
                marker.unlink(missing_ok=True)

    async def _fill(self, name: str, image_id: str) -> None:
        with suppress(SandboxGone):
            await self._engine.remove_volume(name)
        await self._images.resolve(image_id)
        if not await self._images.present(image_id, (KIT,)):
            raise SandboxRefused("kit_refused", f"image {image_id[:19]} has no {KIT}")
        await self._engine.create_volume(name, {}, {KIT_LABEL: image_id})
        mount: dict[str, Any] = {"Type": "volume", "Source": name, "Target": KIT}
        async with unstarted(self._engine, self._deployment, image_id, mounts=[mount], deadline_s=FILL_S):
            pass

    async def _exists(self, name: str) -> bool:
        try:
            await self._engine.inspect_volume(name)
        except SandboxGone:
            return False
        return True
