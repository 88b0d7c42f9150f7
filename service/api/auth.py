"""Who is calling: a bearer token, or a browser's session cookie. Everything else about a caller follows from its token.

One answer for every credential that is not good (401 ``bad_credentials``), on one path: what was wrong with it is not
told. Run tokens (inside sandboxes) are worth ``GET /v1/me`` and nothing else.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from service.api.charging import charge, check_failures, note_failure
from service.api.cookies import session_secret
from service.api.rendering import now
from service.api.state import ApiState, api_state
from service.domain.errors import Forbidden, Unauthenticated
from service.store import tickets, tokens
from service.store.rows import TokenRow

SCOPES = frozenset(
    [f"{noun}:{verb}" for noun in ("tasks", "agents", "runs", "gradings", "reports") for verb in ("read", "write")]
    + [
        "benchmarks:read",
        "benchmarks:write",
        "hidden:read",
        "runs:debug",
        "runs:drive",
        "models:admin",
        "rate",
        "admin",
    ]
)
"""NEEDS C1. ``admin`` includes all others."""
TICKET = "ticket"
"""Query parameter of a one-time ticket (NEEDS D6)."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    token: TokenRow
    by_cookie: bool = False
    by_ticket: bool = False

    @property
    def project_id(self) -> str:
        return self.token.project_id

    def may(self, scope: str) -> bool:
        return scope in self.token.scopes or "admin" in self.token.scopes

    def require(self, scope: str) -> None:
        """Raise Forbidden unless the token has ``scope``."""
        if not self.may(scope):
            raise Forbidden("scope_missing", f"this needs the scope {scope}", scope=scope)


def bearer(request: Request) -> str | None:
    """Return the bearer token of the request, or None if it has no Authorization header at all."""
    value = request.headers.get("authorization")
    if value is None:
        return None
    scheme, _, secret = value.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


async def identify(request: Request) -> Caller:
    """Return who is calling, run tokens included. Raises Unauthenticated, or Forbidden for a foreign origin."""
    state = api_state(request)
    secret = bearer(request)
    if secret is not None:
        caller = await _by_token(request, state, secret)
    elif request.query_params.get(TICKET) is not None:
        caller = await _by_ticket(request, state, request.query_params[TICKET])
    else:
        check_origin(request, state)
        caller = await _by_session(state, session_secret(request))
    request.state.token_id = caller.token.id
    request.state.project_id = caller.project_id
    charge(request, state, caller.token.id)
    return caller


async def _by_token(request: Request, state: ApiState, secret: str) -> Caller:
    credential = hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
    check_failures(request, state, credential)
    async with state.db.statement() as tx:
        token = await tokens.authenticate(tx, secret)
    if token is None:
        note_failure(request, state)
        raise Unauthenticated("bad_credentials", "the token is unknown, expired or revoked")
    state.limiter.remember(credential)
    if token.last_used_at is None or now() - token.last_used_at > tokens.TOUCH_INTERVAL:
        async with state.db.transaction() as tx:
            await tokens.touch(tx, token.id)
    return Caller(token)


async def _by_ticket(request: Request, state: ApiState, secret: str) -> Caller:
    """Take a one-time ticket: for this path, before its time is over, and from the page that it was made for."""
    check_failures(request, state, b"")
    async with state.db.transaction() as tx:
        used = await tickets.use(tx, secret, request.url.path) if request.method == "GET" else None
    if used is None:
        note_failure(request, state)
        raise Unauthenticated("bad_ticket", "the ticket is unknown, used, over, or for another path")
    origin = request.headers.get("origin")
    if origin is not None and origin != (used.origin or state.config.origin):
        raise Forbidden("foreign_origin", "the ticket is for pages of another origin")
    return Caller(used.token, by_ticket=True)


async def _by_session(state: ApiState, secret: str | None) -> Caller:
    if secret is None:
        raise Unauthenticated("credentials_missing", "send `Authorization: Bearer …`")
    async with state.db.statement() as tx:
        token = await tokens.session_token(tx, secret)
    if token is None:
        raise Unauthenticated("bad_credentials", "the session has ended")
    return Caller(token, by_cookie=True)


def check_origin(request: Request, state: ApiState) -> None:
    """Refuse what another site made a browser send. Raises Forbidden.

    SameSite=Strict already keeps the cookie from such requests; this holds where a browser does not know it, and
    for pages of another port of the same host, which are the same site.
    """
    origin = request.headers.get("origin")
    own = {state.config.origin, f"{request.url.scheme}://{request.headers.get('host', '')}"}
    if origin is None:
        if request.method not in SAFE_METHODS:
            raise Forbidden("origin_missing", "a request with a cookie that changes something needs an Origin")
    elif origin not in own or not urlsplit(origin).netloc:
        raise Forbidden("foreign_origin", "cookies are accepted from our own pages only")


async def current_caller(caller: Annotated[Caller, Depends(identify)]) -> Caller:
    if caller.token.kind == "run":
        raise Forbidden("run_token", "a run's token opens /v1/me only")
    return caller


async def page_caller(request: Request) -> Caller:
    """Return who looks at a page: for ``service.dashboard``. Raises Unauthenticated, Forbidden."""
    return await current_caller(await identify(request))


def scope(name: str) -> Callable[[Caller], Awaitable[Caller]]:
    """Return a dependency: the caller, who has scope ``name``."""
    assert name in SCOPES, name

    async def scoped(caller: Annotated[Caller, Depends(current_caller)]) -> Caller:
        caller.require(name)
        return caller

    return scoped


AnyCaller = Annotated[Caller, Depends(identify)]
"""Run tokens too."""
TokenCaller = Annotated[Caller, Depends(current_caller)]
TasksRead = Annotated[Caller, Depends(scope("tasks:read"))]
TasksWrite = Annotated[Caller, Depends(scope("tasks:write"))]
AgentsRead = Annotated[Caller, Depends(scope("agents:read"))]
AgentsWrite = Annotated[Caller, Depends(scope("agents:write"))]
BenchmarksRead = Annotated[Caller, Depends(scope("benchmarks:read"))]
BenchmarksWrite = Annotated[Caller, Depends(scope("benchmarks:write"))]
RunsRead = Annotated[Caller, Depends(scope("runs:read"))]
RunsWrite = Annotated[Caller, Depends(scope("runs:write"))]
RunsDrive = Annotated[Caller, Depends(scope("runs:drive"))]
RunsDebug = Annotated[Caller, Depends(scope("runs:debug"))]
GradingsRead = Annotated[Caller, Depends(scope("gradings:read"))]
GradingsWrite = Annotated[Caller, Depends(scope("gradings:write"))]
ReportsRead = Annotated[Caller, Depends(scope("reports:read"))]
ReportsWrite = Annotated[Caller, Depends(scope("reports:write"))]
ModelsAdmin = Annotated[Caller, Depends(scope("models:admin"))]
Admin = Annotated[Caller, Depends(scope("admin"))]


async def _state(request: Request) -> ApiState:
    return api_state(request)  # a coroutine: FastAPI runs plain functions in a thread


State = Annotated[ApiState, Depends(_state)]
