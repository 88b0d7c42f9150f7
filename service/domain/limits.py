"""Limits of one run. The larger of the task's and the scaffold's need wins (NEEDS B7)."""

from pydantic import BaseModel, ConfigDict, Field

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

OUTPUT_EVENT_BYTES = 16 * KIB
"""Most bytes of output in one event (CONTRACTS 4)."""
OUTPUT_TEXT_BYTES = 16 * MIB
"""Most bytes of output text per run kept in events; what follows is counted, and kept in the raw log."""
RAW_LOG_BYTES = 256 * MIB
"""Most bytes per run and stream kept in the raw log."""
PAYLOAD_BYTES = 8 * KIB
"""Payloads above this become blob references."""
MAX_EVENTS = 200_000
"""Most events per run; past that, output is only counted (state changes are always written)."""


class Limits(BaseModel):
    """Hard limits of a run's sandbox, clock and deliverable."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    wall_clock_s: float = Field(default=3600, gt=0, le=7 * 86_400)
    """Seconds from the scaffold's start until the host kills the sandbox."""
    grace_s: float = Field(default=10, ge=0, le=600)
    """Seconds that ``stop {finish}`` leaves the agent."""
    memory_bytes: int = Field(default=2 * GIB, ge=64 * MIB, le=256 * GIB)
    cpus: float = Field(default=1.0, ge=0.1, le=64)
    pids: int = Field(default=512, ge=16, le=8192)
    disk_bytes: int = Field(default=10 * GIB, ge=16 * MIB, le=512 * GIB)
    """Size of the workspace, HOME included."""
    inodes: int = Field(default=200_000, ge=1_000, le=10_000_000)
    shm_bytes: int = Field(default=64 * MIB, ge=MIB, le=8 * GIB)
    deliverable_bytes: int = Field(default=5 * GIB, ge=1, le=64 * GIB)
    """Most apparent bytes of the sealed deliverable; what does not fit is listed, not sealed."""
    deliverable_files: int = Field(default=20_000, ge=1, le=1_000_000)

    def widened(self, minimum: "Limits | None") -> "Limits":
        """Return these limits with memory, cpus, pids, disk, inodes and shm raised to ``minimum``."""
        if minimum is None:
            return self
        names = ("memory_bytes", "cpus", "pids", "disk_bytes", "inodes", "shm_bytes")
        return self.model_copy(update={n: max(getattr(self, n), getattr(minimum, n)) for n in names})
