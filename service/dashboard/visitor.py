"""Who looks at a page, and what the pages are made from."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from fastapi import Request

from service.domain.errors import Forbidden, Unauthenticated
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.rows_campaigns import RaterRow


class Visitor(Protocol):
    @property
    def project_id(self) -> str: ...

    def may(self, scope: str) -> bool:
        """Return whether the visitor's token has ``scope``."""
        ...


@dataclass(frozen=True, slots=True)
class Rating:
    """What the pages of raters need besides."""

    blobs: BlobStore
    identify: Callable[[Request], Awaitable[RaterRow]]
    """Reads the raters' own cookie. Raises Unauthenticated."""
    previews: Callable[[Request], list[str]]
    """The origins that documents of deliverables are loaded from."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    db: Database
    identify: Callable[[Request], Awaitable[Visitor]]
    """The API's own: reads the session cookie and, where a request changes something, checks its Origin.

    Raises Unauthenticated, Forbidden.
    """
    rating: Rating | None = None
    """Null: there are no pages of raters."""


def dashboard_of(request: Request) -> Dashboard:
    dashboard: object = request.app.state.dashboard
    assert isinstance(dashboard, Dashboard)
    return dashboard


def rating_of(request: Request) -> Rating:
    found = dashboard_of(request).rating
    assert found is not None
    return found


async def visitor_of(request: Request, scope: str) -> Visitor | None:
    """Return who is looking, or None for who has to log in. Raises Forbidden without ``scope``."""
    try:
        visitor = await dashboard_of(request).identify(request)
    except Unauthenticated:
        return None
    if not visitor.may(scope):
        raise Forbidden("scope_missing", f"this needs the scope {scope}", scope=scope)
    return visitor
