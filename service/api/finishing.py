"""What a driver from outside says at the end, and of its cost: the same by REST and by MCP."""

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from service.api.rendering import now
from service.domain.events import EventType, NewEvent
from service.domain.models import TokenUsage
from service.domain.tasks import Money
from service.lifecycle.remote_drive import driver_event
from service.store import driving, leases
from service.store.database import Tx
from service.store.events import append
from service.store.rows import AttemptRow


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class DeclaredUsage(Body):
    """Totals since the start of the run, not increments."""

    requests: int = Field(default=1, ge=1, le=10_000_000)
    input_tokens: int = Field(default=0, ge=0, le=10**15)
    """Neither read from a cache nor written to one."""
    cached_input_tokens: int = Field(default=0, ge=0, le=10**15)
    cache_write_tokens: int = Field(default=0, ge=0, le=10**15)
    output_tokens: int = Field(default=0, ge=0, le=10**15)
    reasoning_tokens: int = Field(default=0, ge=0, le=10**15)
    """Of the output."""
    cost_usd: Money | None = None


class FinishRequest(Body):
    status: Literal["success", "failure"] = "success"
    """The driver's own word; whether the work is good is for the graders."""
    summary: str = Field(default="", max_length=16_000)
    usage: DeclaredUsage | None = None


async def finish(tx: Tx, run_id: str, secret: str, body: FinishRequest) -> None:
    """Raises Conflict ``lease_lost``."""
    lease, attempt = await leases.hold(tx, run_id, secret)
    if body.usage is not None:
        await declare(tx, attempt, body.usage)
    status = "success" if body.status == "success" else "error"
    final = NewEvent(EventType.AGENT_FINAL, {"status": status, "text": body.summary}, "driver.final", 0, now())
    await append(tx, run_id, attempt.n, None, [final, driver_event("finished", lease, now())])
    await leases.finish(tx, run_id, body.model_dump(mode="json"))


async def declare(tx: Tx, attempt: AttemptRow, body: DeclaredUsage) -> bool:
    usage = TokenUsage(**body.model_dump(exclude={"requests", "cost_usd"}))
    payload = {**usage.model_dump(), "requests": body.requests, "cost_usd": body.cost_usd, "basis": "declared"}
    at = now()
    event = NewEvent(EventType.AGENT_USAGE, payload, "driver.usage", int(at.timestamp() * 1e6), at)
    await append(tx, attempt.run_id, attempt.n, None, [event])
    cost = None if body.cost_usd is None else Decimal(body.cost_usd)
    return await driving.declare_usage(tx, attempt.run_id, body.requests, usage, cost)
