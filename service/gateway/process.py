"""The gateway process: its sockets, served until it is told to stop."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from service.domain.errors import Unavailable
from service.gateway.control import Control
from service.gateway.egress.serving import ProxyServing
from service.gateway.endpoints import Endpoints
from service.gateway.forwarding import Forwarding, Parts
from service.gateway.front import Front, Services
from service.gateway.http_server import HttpServing
from service.gateway.place import Place
from service.gateway.registries import Registries
from service.gateway.sides import FindModels, OwnSide, PublicSide

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Gateway:
    """All of it, made while there may still be root; :meth:`run` needs no right at all."""

    parts: Parts
    services: Services
    place: Place
    find_models: FindModels
    serving: HttpServing
    proxies: ProxyServing
    public: socket.socket | None = None
    """The listener of the public side."""
    registries: Registries | None = None
    """What fetches images; null: nothing does."""
    beside: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Loops that run as long as the gateway."""

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``. Then what is under way is cut and written down. Raises what a loop beside it raises."""
        parts = self.parts
        forwarding = Forwarding(parts)
        endpoints = Endpoints(forwarding, self.services, parts.ledger, self.serving, parts.limits, self.proxies)
        own = OwnSide(endpoints, self.place.service_token, self.find_models, parts.limits.local_patience_s)
        fronts = [(Front(forwarding, self.services, own.admit, self.registries), self.place.own)]
        if self.public is not None:
            fronts.append((Front(forwarding, self.services, PublicSide(endpoints).admit), self.public))
        listening = [await self.serving.start(front, sock) for front, sock in fronts]
        control = Control(endpoints)
        tasks = [asyncio.create_task(control.run(self.place.control)), asyncio.create_task(self._recover())]
        tasks += [asyncio.create_task(_forever(loop)) for loop in self.beside]
        stopping = asyncio.create_task(stop.wait())
        log.info("gateway_up", gateway=parts.ledger.gateway_id)
        try:
            done, _ = await asyncio.wait({stopping, *tasks[:1], *tasks[2:]}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()
        finally:
            for task in [stopping, *tasks]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await control.close()
            for one in listening:
                await one.close()
            await endpoints.shut()
            await parts.ledger.flush()

    async def _recover(self) -> None:
        """Settle what an earlier process of this name left, as soon as the database is there."""
        while True:
            try:
                count = await self.parts.ledger.recover()
            except Unavailable:
                await asyncio.sleep(1.0)
                continue
            if count:
                log.warning("requests_of_a_dead_gateway", count=count)
            return


async def _forever(loop: Callable[[], Awaitable[None]]) -> None:
    await loop()
    raise RuntimeError("a loop of the gateway has ended")
