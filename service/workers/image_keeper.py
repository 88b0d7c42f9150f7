"""Keeps on this host's engine what projects brought: loads what is ready, what runs wait for first, and removes the rest."""

import asyncio
from typing import Protocol

import structlog

from service.domain.errors import Unavailable
from service.domain.images import ImageContent
from service.sandboxes.contract import EngineError, SandboxRefused
from service.store import images
from service.store.database import Database
from service.store.notifications import IMAGES, Notifications
from service.store.rows_models import ImageRow
from service.workers.heartbeat import Gauge

SCAN_S = 30.0
"""A look whatever was notified; what failed is tried again then."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HostImages(Protocol):
    """The engine's side of it."""

    async def tags(self) -> set[str]:
        """Return what it has, as ``ImageContent.tag``. Raises EngineError."""
        ...

    async def load(self, content: ImageContent) -> None:
        """Raises SandboxRefused (it is not what it should be), EngineError."""
        ...

    async def remove(self, tag: str) -> None:
        """Raises EngineError."""
        ...


class ImageKeeper:
    """``engine`` null: this host takes no images of projects."""

    def __init__(self, db: Database, notifications: Notifications, engine: HostImages | None, gauge: Gauge) -> None:
        self._db, self._notifications, self._engine, self._gauge = db, notifications, engine, gauge
        self._have: dict[str, str] = {}
        self._refused: set[str] = set()
        self.changed = asyncio.Event()
        """Set when :attr:`ids` has changed; whoever tells it on clears it."""

    @property
    def ids(self) -> list[str]:
        """Images that this host has."""
        return sorted(self._have)

    async def run(self) -> None:
        """Look whenever an image became ready or was deleted. For ever."""
        engine = self._engine
        if engine is None:
            await asyncio.Event().wait()
            return
        async with self._notifications.subscribe(IMAGES) as changes:
            while True:
                try:
                    await self.look(engine)
                except (Unavailable, EngineError) as error:
                    log.warning("images_wait", error=str(error))
                await changes.wait(SCAN_S)

    async def look(self, engine: HostImages) -> None:
        """Make the engine have what it should. Raises Unavailable, EngineError."""
        async with self._db.reading() as tx:
            wanted = await images.wanted(tx)
        there = await engine.tags()
        kept = {row.content.tag for row in wanted if row.content is not None}
        self._set({i: tag for i, tag in self._have.items() if tag in there and tag in kept})
        for tag in there - kept:
            await self._remove(engine, tag)
        for row in wanted:
            if row.id not in self._have and row.id not in self._refused:
                await self._load(engine, row)

    async def _load(self, engine: HostImages, row: ImageRow) -> None:
        content = row.content
        if content is None or not await self._has_room(content):
            return
        try:
            await engine.load(content)
        except SandboxRefused as error:
            self._refused.add(row.id)
            log.error("image_refused", image=row.id, error=str(error))
        except EngineError as error:
            log.warning("image_not_loaded", image=row.id, error=str(error))
        else:
            self._set({**self._have, row.id: content.tag})
            log.info("image_loaded", image=row.id, bytes=content.size_bytes)

    async def _remove(self, engine: HostImages, tag: str) -> None:
        try:
            await engine.remove(tag)
        except EngineError as error:  # a sandbox that is kept for a look still uses it
            log.info("image_stays", image=tag, error=str(error))

    async def _has_room(self, content: ImageContent) -> bool:
        facts = await self._gauge.read()
        free, kept = facts.get("disk_free_bytes"), facts.get("disk_watermark_bytes") or 0
        return free is None or free - content.size_bytes >= kept

    def _set(self, have: dict[str, str]) -> None:
        if have != self._have:
            self._have = have
            self.changed.set()
