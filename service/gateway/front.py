"""The application behind every socket of the gateway: who asks, then where to."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import structlog

from service.domain.errors import Unavailable
from service.gateway.auth import Refused
from service.gateway.caller import Caller
from service.gateway.exchange import ClientGone, Exchange
from service.gateway.forwarding import Forwarding
from service.gateway.refusing import refuse_unknown
from service.gateway.registries import PREFIX, Registries

HELLO = frozenset({"/", "/api/hello"})
SERVICES = "/services/"
Admit = Callable[[Exchange], Awaitable[Caller]]
"""Say who asks. Raises Refused."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Services(Protocol):
    """What answers below ``/services/``."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Raises Refused, ClientGone."""
        ...


class NoServices:
    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        del exchange, caller
        raise Refused(404, "unknown_path", "this gateway has no services")


class Front:
    """An ASGI application for one socket."""

    """``registries`` answers below ``/images/``; null: nothing does, and no sandbox's socket has any."""

    def __init__(
        self, forwarding: Forwarding, services: Services, admit: Admit, registries: Registries | None = None
    ) -> None:
        self._registries = registries
        self._forwarding = forwarding
        self._services = services
        self._admit = admit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self._serve(exchange)
        except ClientGone:
            return
        except Refused as refused:
            await refuse_unknown(exchange, refused)
        except Unavailable:
            await refuse_unknown(exchange, Refused(503, "ledger_unavailable", "the database is away"))
        except Exception:  # the process loop's edge: one request's surprise must not end the others
            log.exception("request_failed", method=exchange.method)
            await refuse_unknown(exchange, Refused(500, "internal_error", "the gateway failed"))

    async def _serve(self, exchange: Exchange) -> None:
        if exchange.header("upgrade") is not None:
            headers = {"content-type": "text/plain", "connection": "close"}
            await exchange.answer(426, headers, b"plain HTTP/1.1 only\n")
            return
        if exchange.shown_path in HELLO and exchange.method in ("HEAD", "GET"):
            await exchange.answer(200, {"content-type": "text/plain"}, b"")
            return
        if self._registries is not None and exchange.shown_path.startswith(PREFIX):
            await self._registries.serve(exchange)
            return
        caller = await self._admit(exchange)
        if exchange.shown_path.startswith(SERVICES):
            await self._services.serve(exchange, caller)
        else:
            await self._forwarding.serve(exchange, caller)
