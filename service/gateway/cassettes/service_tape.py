"""A run's recorded calls to gateway services: by what they are matched by, each to be answered once, in order."""

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from service.domain.errors import NotFound
from service.domain.models import Dialect
from service.gateway.cassettes.difference import first_difference
from service.gateway.cassettes.normal import Normaliser, key_of
from service.gateway.cassettes.tape import CassetteIncomplete, CassetteMismatch
from service.store.blobs import BlobStore
from service.store.request_bodies import CHAIN, Body, BodyUnreadable, read_body
from service.store.rows_requests import ServiceCallRow

_TYPE = "content-type"
TELLING = (_TYPE, "accept", "range")
"""Headers by which services answer differently."""
_BOUNDARY = re.compile(r"(?i)\bmultipart/[^;]+;.*\bboundary=\"?([^\";,\s]{1,70})")


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call without secrets, as it is kept and found again."""

    service: str
    method: str
    path: str
    """Below the service."""
    query: str
    headers: Mapping[str, str]
    """Of :data:`TELLING`, in lower case."""
    body: bytes = field(repr=False)

    def told(self) -> dict[str, Any]:
        """Return what of it is kept beside the body."""
        return {"path": self.path, "query": self.query, "headers": dict(self.headers)}

    def normal(self, normaliser: Normaliser) -> dict[str, Any]:
        query: dict[str, list[str]] = {}
        for name, value in parse_qsl(self.query, keep_blank_values=True):
            query.setdefault(name, []).append(value)
        headers = {name: value for name, value in self.headers.items() if name != _TYPE}
        parts = {"path": self.path, "query": query, "headers": headers, "body": self._body()}
        return normaliser.body(Dialect.OPAQUE, parts)

    def _body(self) -> Any:
        """Return JSON as what it says, text as text; of anything else its digest."""
        data = self.body
        if boundary := _BOUNDARY.search(self.headers.get(_TYPE, "")):
            # Clients draw it by lot.
            data = data.replace(boundary[1].encode(), b"boundary")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        try:
            return json.loads(text) if text[:1] in ("{", "[") else text
        except (ValueError, RecursionError):
            return text


@dataclass(slots=True)
class CallEntry:
    row: ServiceCallRow
    key: str | None
    """Null: its body was not kept whole, so nothing matches it."""
    used: bool = False


@dataclass(slots=True)
class ServiceTape:
    blobs: BlobStore
    entries: Sequence[CallEntry]
    earlier: Sequence[ServiceCallRow] = ()
    """Of attempts before the recorded one: they count against a service's limits."""
    normaliser: Normaliser = field(default_factory=Normaliser)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, asked: AskedCall) -> CallEntry:
        """Return the recorded call that this one is; it is used up then. Blocks. Raises CassetteMismatch."""
        with self._lock:
            normal = asked.normal(self.normaliser)
            key = _key(asked, normal)
            for entry in self.entries:
                if not entry.used and entry.key == key:
                    entry.used = True
                    return entry
            raise self._mismatch(asked, normal)

    def give_back(self, entry: CallEntry) -> None:
        """The call that took it was not made after all."""
        entry.used = False

    def spent(self, service: str) -> tuple[int, Decimal]:
        """Return how often the recorded run had called a service by now, and for how many dollars."""
        rows = [*self.earlier, *(entry.row for entry in self.entries if entry.used)]
        mine = [row for row in rows if row.service == service]
        return len(mine), sum((row.cost_usd or Decimal(0) for row in mine), Decimal(0))

    def _mismatch(self, asked: AskedCall, normal: Mapping[str, Any]) -> CassetteMismatch:
        words = f"{asked.method} of service {asked.service}"
        left = [entry for entry in self.entries if not entry.used]
        alike = [e for e in left if (e.row.service, e.row.method) == (asked.service, asked.method)]
        if not alike:
            return CassetteMismatch(f"the recording has no further {words}")
        expected = next((one for one in alike if _told(one.row).get("path") == asked.path), alike[0])
        n = expected.row.n
        if expected.key is None:
            return CassetteIncomplete(f"call {n} of the recording was not kept whole", n)
        recorded = recorded_call(self.blobs, expected.row)[0].normal(self.normaliser)
        found = first_difference(recorded, normal)
        where = "in how often it is made" if found is None else f"first at {found.pointer or '/'}"
        return CassetteMismatch(f"this call is not call {n} of the recording; they differ {where}", n, found)


def load_service_tape(blobs: BlobStore, rows: Sequence[ServiceCallRow], latest: int) -> ServiceTape:
    """Return the recording of attempt ``latest``. Blocks while the bodies are read."""
    tape = ServiceTape(blobs, [], [row for row in rows if row.attempt < latest])
    known: dict[str, bytes] = {}
    entries: list[CallEntry] = []
    for row in rows:
        if row.attempt != latest:
            continue
        try:
            asked, kept = recorded_call(blobs, row, known)
        except (NotFound, BodyUnreadable):
            entries.append(CallEntry(row, None))
            continue
        entries.append(CallEntry(row, _key(asked, asked.normal(tape.normaliser))))
        known[row.request_blob or ""] = kept.data
        while len(known) > CHAIN:
            known.pop(next(iter(known)))
    tape.entries = entries
    return tape


def recorded_call(
    blobs: BlobStore, row: ServiceCallRow, known: Mapping[str, bytes] | None = None
) -> tuple[AskedCall, Body]:
    """Raises NotFound, BodyUnreadable (it was not kept, or not whole)."""
    if row.request_blob is None or row.cassette is None:
        raise BodyUnreadable("it was not kept")
    body = read_body(blobs, row.request_blob, known)
    if body.cut:
        raise BodyUnreadable("it was not kept whole")
    told = _told(row)
    headers = {str(name): str(value) for name, value in dict(told.get("headers", {})).items()}
    return AskedCall(
        row.service, row.method, str(told.get("path", "")), str(told.get("query", "")), headers, body.data
    ), body


def _told(row: ServiceCallRow) -> Mapping[str, Any]:
    found: Any = (row.cassette or {}).get("asked")
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON of ours


def _key(asked: AskedCall, normal: Mapping[str, Any]) -> str:
    return key_of(asked.method, asked.service, "", normal)
