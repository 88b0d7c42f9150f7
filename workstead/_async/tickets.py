"""One-time tickets for browsers."""

from workstead._async.http import AsyncTransport
from workstead.models import Ticket


class AsyncTickets:
    """``/v1/tickets``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, path: str, *, origin: str | None = None) -> Ticket:
        """Make a ticket for one GET of ``path`` within 60 s, by pages of ``origin`` if it is given. Raises Invalid, Problem."""
        body = {"path": path, "origin": origin}
        return Ticket.model_validate(await self._http.json("POST", "/v1/tickets", json=body))
