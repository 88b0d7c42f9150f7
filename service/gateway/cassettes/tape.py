"""A run's recording, loaded: its requests by what they are matched by, each to be answered once, in order."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from service.domain.errors import NotFound
from service.domain.models import Dialect
from service.gateway.cassettes.difference import Difference, first_difference
from service.gateway.cassettes.normal import Normaliser, key_of
from service.gateway.dialects import registry
from service.gateway.dialects.contract import Route
from service.store.blobs import BlobStore
from service.store.request_bodies import CHAIN, Body, BodyUnreadable, read_body
from service.store.rows_requests import ModelRequestRow


class CassetteMismatch(Exception):
    """A replayed run asks something that its recording has no answer to; ``str()`` is for the client."""

    type: ClassVar[str] = "cassette_mismatch"

    def __init__(self, detail: str, n: int | None = None, difference: Difference | None = None) -> None:
        super().__init__(detail)
        self.n = n
        """Number of the recorded request that was expected."""
        self.difference = difference

    def note(self, *, hidden: bool = False) -> dict[str, Any]:
        """Return the payload of the run's event; of a ``hidden`` request it says where, not what."""
        found = self.difference
        told = {} if found is None else {"pointer": found.pointer, "recorded": found.recorded, "asked": found.asked}
        if hidden and found is not None:
            told = {"pointer": found.pointer}
        return {"kind": self.type, "text": str(self), "expected_n": self.n, **told}


class CassetteIncomplete(CassetteMismatch):
    """The recording was not kept, or not whole: nobody can say what was asked or answered."""

    type: ClassVar[str] = "cassette_incomplete"


@dataclass(slots=True)
class Entry:
    row: ModelRequestRow
    route: Route | None
    key: str | None
    """Null: its body was not kept whole, so nothing matches it."""
    used: bool = False


@dataclass(slots=True)
class Tape:
    blobs: BlobStore
    entries: Sequence[Entry]
    normaliser: Normaliser = field(default_factory=Normaliser)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, route: Route, model: str, method: str, body: Mapping[str, Any]) -> Entry:
        """Return the recorded request that this one is; it is used up then. Blocks. Raises CassetteMismatch."""
        with self._lock:
            return self._take(route, model, method, body)

    def _take(self, route: Route, model: str, method: str, body: Mapping[str, Any]) -> Entry:
        normal = self.normaliser.body(route.dialect, body)
        key = key_of(method, place_of(route), model, normal)
        for entry in self.entries:
            if not entry.used and entry.key == key:
                entry.used = True
                return entry
        raise self._mismatch(route, model, normal)

    def _mismatch(self, route: Route, model: str, normal: Mapping[str, Any]) -> CassetteMismatch:
        left = [entry for entry in self.entries if not entry.used]
        alike = [e for e in left if e.route is not None and place_of(e.route) == place_of(route)]
        if not alike:
            return CassetteMismatch(f"the recording has no further request to {place_of(route)}")
        expected = alike[0]
        n, before = expected.row.n, expected.row.requested_model or ""
        if expected.key is None:
            return CassetteIncomplete(f"request {n} of the recording was not kept whole", n)
        if before != model:
            return CassetteMismatch(
                f"request {n} asked {before!r}, this one asks {model!r}", n, Difference("/model", before, model)
            )
        recorded = self.normaliser.body(route.dialect, _request(self.blobs, expected.row)[0])
        found = first_difference(recorded, normal)
        where = "in how often it is asked" if found is None else f"first at {found.pointer or '/'}"
        return CassetteMismatch(f"this request is not request {n} of the recording; they differ {where}", n, found)


def load_tape(blobs: BlobStore, rows: Sequence[ModelRequestRow], *, screen: bool = False) -> Tape:
    """Return the recording in ``rows``, in their order. Blocks while the bodies are read. ``screen``: the run had one."""
    tape = Tape(blobs, [], Normaliser(screen=screen))
    known: dict[str, bytes] = {}
    entries: list[Entry] = []
    for row in rows:
        method, _, path = row.route.partition(" ")
        route = registry.route(method, path, {})
        key = None
        if route is not None and row.request_blob is not None:
            try:
                body, kept = _request(blobs, row, known)
            except (NotFound, BodyUnreadable, ValueError):
                body, kept = {}, None
            if kept is not None:
                normal = tape.normaliser.body(route.dialect, body)
                key = key_of(method, place_of(route), row.requested_model or "", normal)
                known[row.request_blob] = kept.data
                while len(known) > CHAIN:
                    known.pop(next(iter(known)))
        entries.append(Entry(row, route, key))
    tape.entries = entries
    return tape


def place_of(route: Route) -> str:
    """Return the endpoint whatever path led to it."""
    return f"{route.dialect}:{route.kind}" if route.dialect is not Dialect.OPAQUE else route.upstream_path


def _request(
    blobs: BlobStore, row: ModelRequestRow, known: Mapping[str, bytes] | None = None
) -> tuple[dict[str, Any], Body]:
    """Raises NotFound, BodyUnreadable (it was cut, too), ValueError."""
    body = read_body(blobs, row.request_blob or "", known)
    if body.cut:
        raise BodyUnreadable("it was not kept whole")
    value: object = json.loads(body.data) if body.data.startswith(b"{") else {"bytes": body.data.hex()}
    return cast("dict[str, Any]", value), body
