"""What becomes of one request while it is under way; at its end, the ledger's settlement."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.models import Cost, TokenUsage
from service.gateway.asking import Asking
from service.gateway.dialects.contract import Meter
from service.gateway.passing import Passing
from service.gateway.ports import Pricer
from service.store.rows_requests import Settlement

LONG_WAIT_S = 30.0
"""Before the gate: a breaker is open, or the provider limits us."""


@dataclass(slots=True)
class Record:
    asking: Asking
    price: Pricer
    began: float = field(default_factory=time.monotonic)
    tries: int = 0
    wait_s: float = 0.0
    status: int | None = None
    """Given to the client."""
    error: str | None = None
    provider_error: bool = False
    meter: Meter | None = None
    """Of the answer that was passed on; none: there was no answer of a model."""
    passing: Passing | None = None
    secrets: Sequence[str] = field(default=(), repr=False)
    """What must be in nothing that is kept."""
    note: dict[str, Any] | None = None
    """For the run's log."""
    cut: bool = False
    """It did not come to its end."""
    first_token_s: float | None = None
    provider_request_id: str | None = None
    troubled: bool = False
    """A try has failed by the provider's doing."""

    def kept_waiting(self) -> bool:
        """Tell whether there is no answer for the provider's sake. One that takes long to think is no such reason."""
        return self.passing is None and (self.troubled or self.wait_s >= LONG_WAIT_S)

    def seen(self, headers: Mapping[str, str]) -> None:
        self.provider_request_id = (headers.get("request-id") or headers.get("x-request-id") or "")[:200] or None

    def whole(self) -> bool:
        """Tell whether the answer's own end has passed; nothing more of it is read then."""
        return self.meter is not None and self.meter.answer().complete

    def fail(self, error: str, *, provider: bool) -> None:
        self.error, self.provider_error = error, provider

    def settlement(self) -> Settlement:
        answer = self.meter.answer() if self.meter is not None else None
        usage: TokenUsage | None = TokenUsage()  # nothing was answered, so nothing was taken
        if self.asking.route.generates and (answer is not None or self.cut):
            usage = answer.usage if answer is not None else None
        tools: Mapping[str, int] = answer.server_tools if answer is not None else {}
        cost = Cost()
        if answer is not None and usage is not None and self.asking.route.generates:
            cost = self.price(self.asking.model.spec, usage, tools)
        if answer is not None and answer.error and self.error is None:
            self.fail(f"provider: {answer.error}"[:200], provider=True)
        return Settlement(
            status=self.status, error=self.error, provider_error=self.provider_error, tries=max(1, self.tries),
            usage=usage, cost=cost, reported_model=answer and answer.reported_model,
            provider_request_id=(answer and answer.provider_request_id) or self.provider_request_id,
            finish_reason=answer and answer.finish_reason, server_tools=tools, denied_tools=[tool.name for tool in self.asking.denied],
            first_token_s=self.first_token_s, total_s=time.monotonic() - self.began, wait_s=self.wait_s,
            cassette=self.passing.recording.cassette() if self.passing and self.passing.recording.limit else None,
            note=self.note,
        )  # fmt: skip
