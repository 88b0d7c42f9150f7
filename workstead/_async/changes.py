"""The feed of changed resources, followed for as long as the caller likes."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of
from workstead.errors import ProtocolError
from workstead.models import Change

LONGEST_WAIT_S = 25.0
PAGE = 200


async def follow_changes(
    http: AsyncTransport, after: str | None, kinds: Sequence[str] | None, *, follow: bool
) -> AsyncIterator[Change]:
    """Yield changes from a cursor on; without ``follow`` up to what there is now. Raises Problem, Disconnected."""
    params: dict[str, Any] = {"limit": PAGE}
    if kinds is not None:
        params["kinds"] = ",".join(kinds)
    cursor, more = after, True
    while more or follow:
        wait_s = 0 if more or not follow else LONGEST_WAIT_S
        query = {**params, "wait_s": wait_s} | ({} if cursor is None else {"after": cursor})
        body = await http.json("GET", "/v1/changes", params=query, wait_s=wait_s)
        for item in items_of(body, "/v1/changes"):
            yield Change.model_validate(item)
        page = cast("dict[str, Any]", body)
        cursor, more = page.get("next_after"), bool(page.get("next"))
        if not isinstance(cursor, str):
            raise ProtocolError("/v1/changes: an answer has a cursor to go on from")
