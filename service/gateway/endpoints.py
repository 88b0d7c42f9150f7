"""The attempts that the gateway serves: their sockets, their callers, until their end and a while after it."""

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from service.domain.errors import Conflict
from service.domain.grants import Grant
from service.gateway.auth import Refused, among, presented, token_hash
from service.gateway.caller import Caller, caller_of
from service.gateway.egress.serving import ProxyServing, ServedProxy
from service.gateway.exchange import Exchange
from service.gateway.forwarding import Forwarding
from service.gateway.front import Admit, Front, Services
from service.gateway.http_server import HttpServing, Listening
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.lifecycle.ports import GateState

MODEL_PORT, PROXY_PORT = 80, 81
Key = tuple[str, int]
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Endpoint:
    """One attempt. ``closed`` ones go on saying so until they are forgotten."""

    key: Key
    fence: int
    public: bool
    caller: Caller
    listening: dict[int, Listening] = field(default_factory=dict[int, Listening])
    proxy: ServedProxy | None = None
    closed: bool = False
    timer: asyncio.TimerHandle | None = None

    @property
    def served(self) -> list[Listening | ServedProxy]:
        return [*self.listening.values(), *([] if self.proxy is None else [self.proxy])]

    @property
    def over(self) -> bool:
        return self.closed or self.caller.seconds_left <= 0

    def cut(self) -> None:
        for one in self.served:
            one.cut()
        self.caller.cut()


class Endpoints:
    def __init__(
        self, forwarding: Forwarding, services: Services, ledger: Ledger, serving: HttpServing, limits: GatewayLimits,
        proxies: ProxyServing,
    ) -> None:  # fmt: skip
        self._forwarding, self._services, self._ledger = forwarding, services, ledger
        self._serving, self._limits, self._proxies = serving, limits, proxies
        self._settled = time.monotonic() + limits.settle_s
        self._all: dict[Key, Endpoint] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def open(self, grant: Grant, sockets: Mapping[int, socket.socket]) -> Sequence[int]:
        """Serve the attempt on these sockets, or on what it has already; return the ports that it has now.

        Raises Conflict("fence_lost") for a grant that is older than the known one, Unavailable.
        """
        key = (grant.run_id, grant.attempt)
        endpoint = self._all.get(key)
        if endpoint is None:
            spent = await self._ledger.spent(grant.run_id)
            made = Endpoint(key, grant.fence, grant.public, caller_of(grant, spent))
            endpoint = self._all.setdefault(key, made)
        if grant.fence < endpoint.fence:
            raise Conflict("fence_lost", "another worker has this attempt now")
        endpoint.fence, endpoint.public, endpoint.closed = grant.fence, grant.public, False
        endpoint.caller.renew(grant)
        if endpoint.proxy is not None:
            endpoint.proxy.renew(grant.network)
        for port, sock in sockets.items():
            if port == PROXY_PORT:
                await self._replace_proxy(endpoint, grant, sock)
                continue
            before = endpoint.listening.pop(port, None)
            if before is not None:
                await before.close()
            front = Front(self._forwarding, self._services, self._planted(endpoint))
            endpoint.listening[port] = await self._serving.start(front, sock)
        self._set_timer(endpoint)
        return sorted([*endpoint.listening, *([] if endpoint.proxy is None else [PROXY_PORT])])

    async def _replace_proxy(self, endpoint: Endpoint, grant: Grant, sock: socket.socket) -> None:
        before, endpoint.proxy = endpoint.proxy, None
        if before is not None:
            await before.close()
        endpoint.proxy = await self._proxies.start(grant, sock)

    async def close(self, key: Key, fence: int | None = None) -> None:
        """From now on the attempt's tokens open nothing and its connections are cut; what it did is in the ledger."""
        endpoint = self._all.get(key)
        if endpoint is None or (fence is not None and fence < endpoint.fence):
            return
        endpoint.closed = True
        endpoint.cut()
        self._set_timer(endpoint)
        await self._ledger.flush(key[0])

    def caller(self, key: Key, project_id: str) -> Caller | None:
        """Return the project's attempt while it is served; null: it is over, or not served here."""
        endpoint = self._all.get(key)
        mine = endpoint is not None and endpoint.caller.project_id == project_id and not endpoint.over
        return endpoint.caller if endpoint is not None and mine else None

    def state(self, key: Key) -> GateState:
        endpoint = self._all.get(key)
        return GateState() if endpoint is None else endpoint.caller.activity.state()

    async def ended(self, key: Key) -> GateState:
        """Return once the budget is spent or the provider has failed for good; of an unknown attempt, never."""
        endpoint = self._all.get(key)
        if endpoint is None:
            await asyncio.Event().wait()
            raise AssertionError
        return await endpoint.caller.activity.ended()

    def by_token(self, token: str, *, public: bool) -> Caller:
        """Return who shows this token where no socket says it. Raises Refused (401; 503 soon after the start)."""
        hashed = token_hash(token)
        for endpoint in self._all.values():
            if (endpoint.public or not public) and among(hashed, endpoint.caller.token_hashes):
                _check_open(endpoint)
                return endpoint.caller
        if time.monotonic() < self._settled:
            raise Refused(
                503, "gateway_starting", "the gateway has just started and does not know every run yet: try again"
            )
        raise Refused(401, "token_invalid", "not a run token")

    async def shut(self) -> None:
        """Stop listening everywhere and cut what is under way."""
        endpoints, self._all = list(self._all.values()), {}
        for endpoint in endpoints:
            await self._leave(endpoint)

    def _planted(self, endpoint: Endpoint) -> Admit:
        async def admit(exchange: Exchange) -> Caller:
            token = presented(exchange.headers, exchange.query())
            hashed = token_hash(token)
            if among(hashed, endpoint.caller.token_hashes):
                _check_open(endpoint)
                return endpoint.caller
            if any(among(hashed, other.caller.token_hashes) for other in self._all.values()):
                raise Refused(403, "token_of_another_run", "this token is another run's")
            raise Refused(401, "token_invalid", "not this run's token")

        return admit

    def _set_timer(self, endpoint: Endpoint) -> None:
        """Cut at the deadline; forget some time after the end."""
        if endpoint.timer is not None:
            endpoint.timer.cancel()
        loop = asyncio.get_running_loop()
        wait = self._limits.keep_dead_s if endpoint.over else endpoint.caller.seconds_left
        endpoint.timer = loop.call_later(max(0.0, wait), self._due, endpoint, endpoint.over)

    def _due(self, endpoint: Endpoint, over: bool) -> None:
        if over:
            self._all.pop(endpoint.key, None)
            task = asyncio.create_task(self._leave(endpoint))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        else:
            endpoint.caller.until = min(endpoint.caller.until or 0.0, time.monotonic())
            endpoint.cut()
            self._set_timer(endpoint)

    @staticmethod
    async def _leave(endpoint: Endpoint) -> None:
        if endpoint.timer is not None:
            endpoint.timer.cancel()
        endpoint.cut()
        for one in endpoint.served:
            await one.close()


def _check_open(endpoint: Endpoint) -> None:
    if endpoint.over:
        raise Refused(401, "run_over", "the run has ended; this token opens nothing any more")
