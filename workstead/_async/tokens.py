"""Tokens of the caller's project."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of
from workstead.models import Token


class AsyncTokens:
    """``/v1/tokens``; needs the scope ``admin``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, scopes: Sequence[str], *, note: str = "", expires_at: datetime | None = None) -> Token:
        """Make a token; its ``secret`` is in this answer only. Never repeated by itself: each call makes one.

        Raises Invalid (unknown scope, time in the past), Forbidden, Problem.
        """
        body = {"scopes": list(scopes), "note": note, "expires_at": expires_at.isoformat() if expires_at else None}
        return Token.model_validate(await self._http.json("POST", "/v1/tokens", json=body))

    async def list(self) -> Sequence[Token]:
        """Return the project's tokens, without secrets."""
        return [Token.model_validate(i) for i in items_of(await self._http.json("GET", "/v1/tokens"), "/v1/tokens")]

    async def revoke(self, token_id: str) -> None:
        """Revoke a token; its open streams end within 5 s. Raises NotFound, Forbidden."""
        await self._http.request("DELETE", f"/v1/tokens/{quote(token_id, safe='')}")
