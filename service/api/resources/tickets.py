"""``/v1/tickets``: one-time tickets for what cannot send a bearer token, as EventSource and ``<img>`` (NEEDS D6)."""

import re
from typing import Annotated
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import State, TokenCaller
from service.api.json_body import StrictRoute
from service.api.rendering import Timestamp, View, answer
from service.api.state import ApiConfig
from service.domain.errors import Invalid
from service.store import tickets

router = APIRouter(prefix="/v1/tickets", tags=["tokens"], route_class=StrictRoute)
_ONE = r"[A-Za-z0-9_]+"
_PATHS = re.compile(
    rf"/v1/(changes|runs/{_ONE}/(events|artifacts|artifacts/.+|shell|attempts/\d+/logs/{_ONE}))\Z", re.ASCII | re.DOTALL
)


class TicketRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    path: Annotated[str, Field(min_length=1, max_length=8192)]
    """Path of one GET, without a query: an event stream, the feed of changes, an artifact or the archive, a log."""
    origin: Annotated[str, Field(max_length=300)] | None = None
    """Origin of the page that will use it (``https://app.example``); null: our own pages, or no browser."""


class Ticket(View):
    ticket: str
    """Put it into the URL as ``?ticket=…``, beside whatever else the route takes. Good once."""
    path: str
    expires_at: Timestamp


@router.post("", operation_id="create_ticket", response_model=Ticket, status_code=201)
async def create_ticket(body: TicketRequest, caller: TokenCaller, state: State) -> Response:
    """Make a ticket: one GET of one path within 60 s, with this token's rights. A reconnect needs another one."""
    path = unquote(body.path)
    if not _PATHS.match(path):
        raise Invalid("no_ticket_for_path", "tickets are for event streams, changes, artifacts and logs; no query")
    check_origin(body.origin, state.config)
    async with state.db.transaction() as tx:
        secret, expires_at = await tickets.mint(tx, caller.token, path, body.origin)
    made = Ticket(ticket=secret, path=body.path, expires_at=expires_at)
    return answer(made, 201, {"Cache-Control": "no-store"})


def check_origin(origin: str | None, config: ApiConfig) -> None:
    if origin is None:
        return
    url = urlsplit(origin)
    if origin != f"{url.scheme}://{url.netloc}" or not url.netloc or "@" in url.netloc:
        raise Invalid("bad_origin", "an origin is scheme://host or scheme://host:port")
    allowed = (*config.cors_origins, config.origin)
    if origin not in allowed and "*" not in allowed:
        raise Invalid("origin_not_allowed", "the operator has not allowed this origin (setting api.cors_origins)")
