"""Who opens a WebSocket: a bearer token, a one-time ticket for its path, or (only from our own pages) a session cookie.

Browsers open sockets across origins and send cookies with them, so a cookie is worth nothing without our own Origin.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from service.api.auth import TICKET, Caller
from service.api.cookies import cookie_name
from service.api.state import ApiState
from service.domain.errors import Forbidden, Unauthenticated
from service.store import tickets, tokens
from service.store.rows import TokenRow
from service.store.tickets import Used


@dataclass(frozen=True, slots=True)
class Entrance:
    caller: Caller
    ticket: Used | None = None


async def enter(connection: HTTPConnection, state: ApiState, *, cookies: bool = False) -> Entrance:
    """Return who it is; ``cookies``: a session will do. Raises Unauthenticated, or Forbidden for a foreign origin."""
    secret = connection.query_params.get(TICKET)
    if secret is not None:
        return await _by_ticket(connection, state, secret)
    if "authorization" not in connection.headers and cookies:
        _own_origin(connection, state)
        return _api(await _session(connection, state), by_cookie=True)
    return _api(await _bearer(connection, state))


async def _by_ticket(connection: HTTPConnection, state: ApiState, secret: str) -> Entrance:
    async with state.db.transaction() as tx:
        used = await tickets.use(tx, secret, connection.url.path)
    if used is None:
        raise Unauthenticated("bad_ticket", "the ticket is unknown, used, over, or for another path")
    origin = connection.headers.get("origin")
    if origin is not None and origin != (used.origin or state.config.origin):
        raise Forbidden("foreign_origin", "the ticket is for pages of another origin")
    return Entrance(Caller(used.token, by_ticket=True), used)


async def _bearer(connection: HTTPConnection, state: ApiState) -> TokenRow | None:
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    async with state.db.statement() as tx:
        return await tokens.authenticate(tx, secret.strip())


async def _session(connection: HTTPConnection, state: ApiState) -> TokenRow | None:
    secret = connection.cookies.get(cookie_name(state.config))
    if secret is None:
        return None
    async with state.db.statement() as tx:
        return await tokens.session_token(tx, secret)


def _own_origin(connection: HTTPConnection, state: ApiState) -> None:
    origin = connection.headers.get("origin", "")
    scheme = "https" if connection.url.scheme in ("wss", "https") else "http"
    own = {state.config.origin, f"{scheme}://{connection.headers.get('host', '')}"}
    if origin not in own or not urlsplit(origin).netloc:
        raise Forbidden("foreign_origin", "cookies are accepted from our own pages only")


def _api(token: TokenRow | None, *, by_cookie: bool = False) -> Entrance:
    if token is None or token.kind != "api":
        raise Unauthenticated("bad_credentials", "send `Authorization: Bearer …` or a ticket")
    return Entrance(Caller(token, by_cookie=by_cookie))
