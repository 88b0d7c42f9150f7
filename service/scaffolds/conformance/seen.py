"""What was seen of a case's run, by the host, the gateway and the provider; never by the program alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.domain.models import TokenUsage
from service.domain.run_states import EndedBecause, Outcome


@dataclass(frozen=True, slots=True)
class Seen:
    outcome: Outcome | None
    ended_because: EndedBecause | None
    wall_s: float | None
    """Seconds of the agent phase."""
    files: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Path in the deliverable → sha256 (null: no regular file)."""
    asked: int = 0
    """Requests that reached the provider."""
    statuses: Sequence[int] = ()
    """What the provider answered, in order."""
    sent: TokenUsage = field(default_factory=TokenUsage)
    """What the provider says it sent."""
    counted: TokenUsage = field(default_factory=TokenUsage)
    """What the ledger says was used."""
    unknown: int = 0
    """Requests whose usage the ledger does not know."""
    events: int = 0
    output_bytes: int = 0
    """Bytes of output text kept in events."""
    stop_s: float | None = None
    """Seconds from the request to stop until the run was done."""
    batches: int = 0
    """Batches of actions on the screen with a picture of what came of them."""
    driver_events: Sequence[str] = ()
    """What a remote driver did, in order: claimed, lost, released, finished."""

    def words(self) -> str:
        """Return it in a sentence."""
        parts = [f"ended as {self.ended_because or 'nothing'}", f"outcome {self.outcome or 'none'}"]
        parts += [] if self.wall_s is None else [f"{self.wall_s:.1f} s"]
        parts += [f"{self.asked} requests {sorted(set(self.statuses))}"] if self.asked else ["no model request"]
        parts += [f"files {', '.join(sorted(self.files)) or 'none'}"]
        parts += [] if self.stop_s is None else [f"{self.stop_s:.1f} s from stop to done"]
        parts += [f"{self.batches} batches on the screen"] if self.batches else []
        parts += [f"driver {' '.join(self.driver_events)}"] if self.driver_events else []
        return "; ".join(parts)
