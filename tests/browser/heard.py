"""Everything that browsers were told, as the server sent it: a browser forgets bodies of pages that it has left."""

from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAD = "workstead="
"""In the cookie of people with a token; raters have another one."""


@dataclass
class Heard:
    answers: list[tuple[str, bytearray]] = field(default_factory=list[tuple[str, bytearray]])
    """Cookie of the request; address, headers and body of the answer."""

    def by_raters(self) -> str:
        """Return what everybody but the lead was told, in lower case."""
        return "\n".join(told.decode("latin-1") for cookie, told in self.answers if LEAD not in cookie).lower()


class Hearing:
    """ASGI middleware that writes into ``heard`` what browsers are told."""

    def __init__(self, app: ASGIApp, heard: Heard) -> None:
        self._app = app
        self._heard = heard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "chrome" not in asked.get("user-agent", "").lower():
            await self._app(scope, receive, send)
            return
        told = bytearray(scope["path"].encode() + b"?" + scope["query_string"] + b"\n")
        self._heard.answers.append((asked.get("cookie", ""), told))

        async def noted(message: Message) -> None:
            for name, value in message.get("headers", ()):
                told.extend(name + b": " + value + b"\n")
            told.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, noted)
