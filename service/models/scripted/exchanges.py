"""What the provider was asked and what it answered, for tests to look at."""

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service.domain.models import TokenUsage

MAX_BYTES = 256_000_000
MAX_EXCHANGES = 20_000
_MAX_COUNTS = 10_000


@dataclass(slots=True)
class Exchange:
    """One request; ``usage`` is exactly what was sent, null where no usage left (an error, a cut answer)."""

    number: int
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    credential: str = field(repr=False)
    scenario: str = ""
    turn: int | None = None
    model: str = ""
    status: int = 0
    usage: TokenUsage | None = None
    complete: bool = False
    """Every byte of the answer was sent, and nobody hung up."""

    @property
    def json(self) -> Any:
        """Return the body's JSON. Raises ValueError."""
        return json.loads(self.body)

    def record(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "number": self.number, "method": self.method, "path": self.path, "query": self.query,
            "headers": dict(self.headers), "body": self.body.decode(errors="replace"), "scenario": self.scenario,
            "turn": self.turn, "model": self.model, "status": self.status, "complete": self.complete,
            "usage": self.usage.model_dump() if self.usage else None,
        }  # fmt: skip


class Log:
    """Bounded: the oldest exchanges go first. Read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exchanges: deque[Exchange] = deque()
        self._bytes = 0
        self._next = 1
        self._counts: OrderedDict[tuple[Any, ...], int] = OrderedDict()

    def add(self, **fields: Any) -> Exchange:
        with self._lock:
            exchange = Exchange(number=self._next, **fields)
            self._next += 1
            self._bytes += len(exchange.body)
            self._exchanges.append(exchange)
            while self._bytes > MAX_BYTES or len(self._exchanges) > MAX_EXCHANGES:
                self._bytes -= len(self._exchanges.popleft().body)
        return exchange

    def all(self, after: int = 0) -> list[Exchange]:
        """Return what is kept of the exchanges with a number above ``after``."""
        with self._lock:
            return [exchange for exchange in self._exchanges if exchange.number > after]

    def count(self, *key: Any) -> int:
        """Return how often ``key`` was counted before, and count it."""
        with self._lock:
            before = self._counts.pop(key, 0)
            self._counts[key] = before + 1
            if len(self._counts) > _MAX_COUNTS:
                self._counts.popitem(last=False)
        return before
