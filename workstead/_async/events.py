"""A run's events as one stream that outlives connections."""

import json
from collections.abc import AsyncIterator, Mapping

import httpx

from workstead._async.http import AsyncTransport
from workstead.errors import Disconnected, Problem, ProtocolError, Unavailable
from workstead.models import Event
from workstead.sse import Message, SseParser

CONNECTIONS_WITHOUT_NEWS = 60
"""Connections in a row that brought no event before the stream gives up (about five minutes)."""


async def stream_events(
    http: AsyncTransport, path: str, after: int, until: str, filters: Mapping[str, str] | None = None
) -> AsyncIterator[Event]:
    """Yield each event once, in order, up to the server's ``end``. Raises Problem, ProtocolError, Disconnected."""
    cursor, tried = after, 0
    while tried <= CONNECTIONS_WITHOUT_NEWS:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(cursor)}
        parser = SseParser()
        try:
            async with http.stream(path, params={"until": until, **(filters or {})}, headers=headers) as response:
                if response.status_code == 204:
                    return
                async for chunk in response.aiter_bytes():
                    for message in parser.feed(chunk):
                        if message.event == "end":
                            return
                        event = parse_event(message)
                        if event is not None and event.seq > cursor:
                            cursor, tried = event.seq, 0
                            yield event
        except (httpx.TransportError, Unavailable):
            pass  # the cursor tells where to go on
        except Problem as problem:
            if problem.status not in (429, 502, 504):
                raise
        await http.pause(tried)
        tried += 1
    raise Disconnected(f"{path}: no event came on {tried} connections after number {cursor}")


def parse_event(message: Message) -> Event | None:
    """Return the event of a message; None for messages that carry none. Raises ProtocolError."""
    if not message.data:
        return None
    try:
        body = json.loads(message.data)
        return Event.model_validate(body) if isinstance(body, dict) and "seq" in body else None
    except (ValueError, RecursionError) as error:
        raise ProtocolError("an event is not what this client understands") from error
