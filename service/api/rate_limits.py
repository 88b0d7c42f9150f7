"""Token buckets: how often one token may call, and one address fail to say who it is (NEEDS D7).

They live in memory: each API process has its own. Classes of calls for each token: ``read``, ``write``, ``upload`` for
what an import does by the hundred (blobs, tasks, benchmarks), which is bounded by the bytes anyway, and ``drive`` at the
same rates for what a remote loop does all the time.
"""

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_BUCKETS = 20_000
MAX_KNOWN = 10_000
UNCHANGED_COST = 0.1
"""What a 304 costs."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_DRIVES = re.compile(r"/v1/runs/[^/]+/(exec|files|messages|usage|heartbeat|mcp)\b")
_UPLOADS = ("/v1/blobs", "/v1/tasks", "/v1/benchmarks")


@dataclass(frozen=True, slots=True)
class Rates:
    """Calls per second, and how many may come at once."""

    read_per_s: float = 50
    read_burst: int = 200
    write_per_s: float = 10
    write_burst: int = 200
    upload_per_s: float = 500
    upload_burst: int = 2000
    failures_per_s: float = 1
    """Failed credentials per second and peer address."""
    failures_burst: int = 30
    streams_per_token: int = 100
    """Open event streams and long polls."""


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    per_s: float
    burst: int

    @property
    def header(self) -> str:
        """The policy as RateLimit-Policy has it: ``"read";q=200;w=4``, 200 calls in 4 s."""
        return f'"{self.name}";q={self.burst};w={math.ceil(self.burst / self.per_s)}'


@dataclass(slots=True)
class Bucket:
    policy: Policy
    left: float
    at: float

    def take(self, now: float, cost: float, needed: float) -> bool:
        """Take ``cost`` if ``needed`` is there."""
        self.fill(now)
        if self.left < needed:
            return False
        self.left -= cost
        return True

    def fill(self, now: float) -> None:
        self.left = min(self.left + (now - self.at) * self.policy.per_s, self.policy.burst)
        self.at = now

    def give_back(self, cost: float) -> None:
        self.left = min(self.left + cost, self.policy.burst)

    def wait_s(self, needed: float) -> int:
        """Seconds until ``needed`` is there, at least 1."""
        return max(1, math.ceil((needed - self.left) / self.policy.per_s))

    def headers(self) -> dict[str, str]:
        full_s = math.ceil((self.policy.burst - self.left) / self.policy.per_s)
        state = f'"{self.policy.name}";r={max(0, math.floor(self.left))};t={max(0, full_s)}'
        return {"RateLimit-Policy": self.policy.header, "RateLimit": state}


@dataclass(slots=True)
class Limiter:
    """All buckets of a process, bounded: those unused for longest are forgotten, which refills them."""

    rates: Rates = field(default_factory=Rates)
    clock: Callable[[], float] = time.monotonic
    failures: Policy = field(init=False)
    _read: Policy = field(init=False)
    _write: Policy = field(init=False)
    _upload: Policy = field(init=False)
    _drive: Policy = field(init=False)
    _buckets: OrderedDict[tuple[str, str], Bucket] = field(default_factory=OrderedDict[tuple[str, str], Bucket])
    _known: OrderedDict[bytes, None] = field(default_factory=OrderedDict[bytes, None])

    def __post_init__(self) -> None:
        rates = self.rates
        self._read = Policy("read", rates.read_per_s, rates.read_burst)
        self._write = Policy("write", rates.write_per_s, rates.write_burst)
        self._upload = Policy("upload", rates.upload_per_s, rates.upload_burst)
        self._drive = Policy("drive", rates.upload_per_s, rates.upload_burst)
        self.failures = Policy("failures", rates.failures_per_s, rates.failures_burst)

    def policy(self, method: str, path: str) -> Policy:
        """Return the class of a call."""
        if _DRIVES.match(path):
            return self._drive
        if method in _READS and not path.startswith(_UPLOADS[0]):
            return self._read
        return self._upload if path.startswith(_UPLOADS) else self._write

    def bucket(self, key: str, policy: Policy) -> Bucket:
        """Return the bucket of a token or address, filled up to now."""
        now = self.clock()
        found = self._buckets.get((key, policy.name))
        if found is None:
            found = self._buckets[key, policy.name] = Bucket(policy, policy.burst, now)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end((key, policy.name))
            found.fill(now)
        return found

    def remember(self, credential: bytes) -> None:
        """Note the hash of a credential that was good, so that failures of others at its address do not stop it."""
        self._known[credential] = None
        self._known.move_to_end(credential)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def knows(self, credential: bytes) -> bool:
        return credential in self._known
