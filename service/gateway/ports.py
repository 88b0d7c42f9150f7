"""What the forwarding of a request needs from its neighbours in the gateway; wiring gives it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from service.domain.models import Cost, ModelSpec, TokenUsage

Pricer = Callable[[ModelSpec, TokenUsage, Mapping[str, int]], Cost]
"""Model, tokens, provider-side tool → uses."""


class Purpose(StrEnum):
    """What a credential is for; one of a judge never serves an agent."""

    AGENT = "agent"
    CLIENT = "client"
    """A simulated client of a task."""
    JUDGE = "judge"
    CHECK = "check"
    """Trying out an entry of the catalogue."""


class CredentialUnavailable(Exception):
    """``type``: credential_missing | credential_unreadable | credential_purpose. ``str()`` says it in words, no secret."""

    def __init__(self, type: str, detail: str) -> None:
        super().__init__(detail)
        self.type = type


class Credentials(Protocol):
    async def secret(self, project_id: str, credential_id: str, purpose: Purpose, /) -> str:
        """Return the secret. Raises CredentialUnavailable, Unavailable (the database is away)."""
        ...

    async def deployment(self, project_id: str, spec: ModelSpec, purpose: Purpose, /) -> str | None:
        """Return the operator's own key for a model without a credential, if there is one. Raises Unavailable."""
        ...


class NoCredentials:
    """No secrets are kept here: only models without a credential can be asked."""

    async def secret(self, project_id: str, credential_id: str, purpose: Purpose, /) -> str:
        del project_id, purpose
        raise CredentialUnavailable("credential_missing", f"this gateway has no credential {credential_id}")

    async def deployment(self, project_id: str, spec: ModelSpec, purpose: Purpose, /) -> str | None:
        del project_id, spec, purpose


class TryOutcome(StrEnum):
    """How one try at the provider went, as far as its health is concerned."""

    OK = "ok"
    LIMITED = "limited"
    """429."""
    FAILED = "failed"
    """5xx, 529, no connection, cut or stalled before the answer's end."""
    REJECTED = "rejected"
    """401 or 403: the credential."""
    NEUTRAL = "neutral"
    """Says nothing of the provider: another 4xx, the client went away."""


@dataclass(frozen=True, slots=True)
class GateKey:
    project_id: str
    provider: str
    model_id: str
    credential_id: str | None
    max_concurrency: int | None = None


class GateClosed(Exception):
    """The breaker stayed open, or no place came free, for as long as the caller was willing to wait."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Slot(Protocol):
    """A place among the requests under way to one provider; given back at the end of its ``async with``."""

    def report(self, outcome: TryOutcome, retry_after_s: float | None = None) -> None:
        """Say how the try went. Without a report it counts as NEUTRAL."""
        ...


class Gate(Protocol):
    """Breaker and adaptive concurrency of (provider, model, credential)."""

    def slot(self, key: GateKey, patience_s: float) -> AbstractAsyncContextManager[Slot]:
        """Wait at most ``patience_s`` for a place. One slot is one try. Raises GateClosed."""
        ...


class OpenSlot:
    def report(self, outcome: TryOutcome, retry_after_s: float | None = None) -> None:
        del outcome, retry_after_s


class OpenGate:
    """Lets everything through at once."""

    @asynccontextmanager
    async def slot(self, key: GateKey, patience_s: float) -> AsyncGenerator[Slot]:
        del key, patience_s
        yield OpenSlot()
