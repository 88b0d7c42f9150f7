"""A thin HTTP client for benches: the standard library's, so that little of what is measured is the client's own."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tests.journeys.stack import Stack


class Fast:
    def __init__(self, stack: Stack) -> None:
        url = urlsplit(stack.url)
        self._address = (url.hostname or "127.0.0.1", url.port or 80)
        self._headers = {"Authorization": f"Bearer {stack.token}"}
        self._kept = http.client.HTTPConnection(*self._address, timeout=120)

    def post(self, path: str, body: Any) -> Any:
        self._kept.request("POST", path, json.dumps(body), {**self._headers, "Content-Type": "application/json"})
        answer = self._kept.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {data!r}")
        return json.loads(data)

    def sse(self, path: str) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield (time of arrival by ``time.time``, event) until the stream ends."""
        connection = http.client.HTTPConnection(*self._address, timeout=120)
        connection.request("GET", path, headers={**self._headers, "Accept": "text/event-stream"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.read()!r}")
        try:
            for line in answer:
                if line.startswith(b"data: "):
                    yield time.time(), json.loads(line[6:])
                elif line.startswith(b"event: end"):
                    return
        finally:
            connection.close()
