"""Rows of the ledger of model requests, and what goes into them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar

from service.domain.models import Cost, CostBasis, TokenUsage
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request about to be forwarded. ``run_id`` and ``attempt`` are null for one of no run."""

    id: str
    project_id: str
    gateway_id: str
    run_id: str | None
    attempt: int | None
    purpose: str
    """agent | client | judge | check"""
    model_id: str
    provider: str
    dialect: str
    route: str
    """Method and path, without a query."""
    requested_model: str | None
    streaming: bool
    reserved_tokens: int = 0
    reserved_usd: Decimal | None = None
    subject: str | None = None
    """What it is for, where it is no run's: a grading's id."""


@dataclass(frozen=True, slots=True)
class SubjectCost:
    """What all requests for one subject took."""

    requests: int
    usd: Decimal | None
    """Of those whose price is known; null: of none."""
    unknown: int
    """Requests whose cost is not known, those under way included."""
    usage: TokenUsage
    """Of those whose usage is known."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a request ended."""

    status: int | None
    """What the client got; null = it went away before."""
    error: str | None = None
    provider_error: bool = False
    """The provider's doing, not the client's."""
    tries: int = 1
    usage: TokenUsage | None = None
    """Null: not known."""
    cost: Cost = field(default_factory=Cost)
    reported_model: str | None = None
    provider_request_id: str | None = None
    finish_reason: str | None = None
    server_tools: Mapping[str, int] = field(default_factory=dict[str, int])
    denied_tools: Sequence[str] = ()
    first_token_s: float | None = None
    total_s: float | None = None
    wait_s: float = 0.0
    request_blob: str | None = None
    response_blob: str | None = None
    cassette: Json | None = None
    blobs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes of what the bodies are made of."""
    note: Json | None = None
    """Payload of a ``note`` event beside the request's own."""


@dataclass(frozen=True, slots=True)
class ModelRequestRow(Row):
    id: str
    project_id: str
    run_id: str | None
    attempt: int | None
    n: int | None
    """Of the run, from 1."""
    purpose: str
    state: str
    """started | finished"""
    model_id: str | None
    provider: str | None
    dialect: str | None
    route: str
    requested_model: str | None
    reported_model: str | None
    provider_request_id: str | None
    streaming: bool
    status: int | None
    error: str | None
    provider_error: bool
    tries: int
    usage_known: bool
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    reserved_tokens: int
    cost_usd: Decimal | None
    cost_basis: CostBasis
    price_date: date | None
    server_tools: Json
    finish_reason: str | None
    first_token_s: float | None
    total_s: float | None
    wait_s: float
    request_blob: str | None
    response_blob: str | None
    cassette: Json | None
    created_at: datetime
    finished_at: datetime | None
    CONVERT: ClassVar[Converters] = {"cost_basis": CostBasis}


@dataclass(frozen=True, slots=True)
class Spent:
    """What all attempts of a run took so far; where the usage is not known, what was reserved."""

    requests: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call to a gateway service that is about to leave, with its price."""

    id: str
    project_id: str
    run_id: str
    attempt: int
    gateway_id: str
    service: str
    method: str
    path: str
    """Below the service, without a query."""
    units: Decimal | None = None
    """What a price per unit counts; null: there is none."""
    cost_usd: Decimal | None = None
    """Null: not known, never free."""
    price_date: date | None = None
    replay_of_n: int | None = None
    """Of a replay: number of the recorded call that answers in the service's place."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    status: int | None
    """What the service answered, or we in its place; null: nothing was answered."""
    error: str | None = None
    size: int = 0
    """Bytes of the answer."""
    seconds: float | None = None
    request_blob: str | None = None
    response_blob: str | None = None
    cassette: Json | None = None
    blobs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes of what the bodies are made of."""
    note: Json | None = None
    """Payload of a ``note`` event beside the call's own."""


@dataclass(frozen=True, slots=True)
class ServiceCallRow(Row):
    id: str
    project_id: str
    run_id: str
    attempt: int
    n: int
    """Of the run, from 1."""
    state: str
    """started | finished"""
    service: str
    method: str
    path: str
    status: int | None
    error: str | None
    bytes: int
    units: Decimal | None
    cost_usd: Decimal | None
    price_date: date | None
    seconds: float | None
    request_blob: str | None
    response_blob: str | None
    cassette: Json | None
    replay_of_n: int | None
    created_at: datetime
    finished_at: datetime | None
