"""Lists: one page after the other by the server's ``next`` link."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from workstead._async.http import AsyncTransport
from workstead.errors import ProtocolError

PAGE = 200


async def pages(
    http: AsyncTransport, path: str, params: Mapping[str, Any], limit: int | None
) -> AsyncIterator[dict[str, Any]]:
    """Yield at most ``limit`` items; a page is fetched when the one before is used up."""
    query: Mapping[str, Any] | None = {**params, "limit": min(limit or PAGE, PAGE)}
    left = limit
    while True:
        body = await http.json("GET", path, params=query)
        for item in items_of(body, path):
            if left is not None and left <= 0:
                return
            left = None if left is None else left - 1
            yield item
        if not (link := cast("dict[str, Any]", body).get("next")):
            return
        # Only path and query of the link count: the bearer token must never follow a link to another origin.
        parts = urlsplit(str(link))
        path, query = f"{parts.path}?{parts.query}", None


def items_of(body: Any, path: str) -> list[dict[str, Any]]:
    """Return the items of a list's answer. Raises ProtocolError."""
    items = cast("dict[str, Any]", body).get("data") if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise ProtocolError(f"{path}: a list answers with data")
    return cast("list[dict[str, Any]]", items)
