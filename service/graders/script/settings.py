"""Settings of method ``script``."""

from typing import Annotated, Literal

from pydantic import Field

from service.domain.limits import GIB, MIB, Limits
from service.domain.paths import RelativePath
from service.domain.tasks import Strict

SCRATCH_MEMORY = 32
"""One part in so many of a room's memory is its /tests (64 MiB at most)."""
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class ScriptSettings(Strict):
    tests: RelativePath = "tests"
    """Folder among the hidden files; what is below it lies in /tests when the script runs."""
    command: list[Annotated[str, Field(min_length=1, max_length=4096)]] = Field(
        default_factory=lambda: ["/bin/bash", "/tests/test.sh"], min_length=1, max_length=64
    )
    """Run in /workspace. It leaves ``/logs/verifier/reward.txt`` (a number) or ``reward.json`` (an object of numbers)."""
    environment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._/:@-]{0,254}$")] | None = None
    """Image in which it runs: a shipped name, or an image id known to the host; null: the task's own environment."""
    env: dict[EnvName, Annotated[str, Field(max_length=4096)]] = Field(default_factory=dict[str, str], max_length=32)
    with_visible: bool = True
    """The task's visible files lie in the workspace too, where the deliverable has none of that path."""
    reward: Annotated[str, Field(min_length=1, max_length=128)] = "reward"
    """Key of ``reward.json`` that is the score; an object of one number needs none."""
    max_score: float = Field(default=1, gt=0, le=1e9)
    """Rewards lie between 0 and this."""
    timeout_s: float = Field(default=600, ge=1, le=7200)
    on_timeout: Literal["zero", "failed"] = "zero"
    """What it means that the script did not end, twice: the deliverable's doing, or nobody's word."""
    no_reward: Literal["zero", "failed"] = "failed"
    """What it means that the script ended and left no reward."""
    memory_bytes: int = Field(default=2 * GIB, ge=256 * MIB, le=64 * GIB)
    cpus: float = Field(default=1, ge=0.1, le=16)
    pids: int = Field(default=512, ge=16, le=8192)
    disk_bytes: int = Field(default=GIB, ge=64 * MIB, le=64 * GIB)
    """For the deliverable, the visible files and what the script writes."""

    def limits(self) -> Limits:
        return Limits(
            wall_clock_s=self.timeout_s,
            memory_bytes=self.memory_bytes,
            cpus=self.cpus,
            pids=self.pids,
            disk_bytes=self.disk_bytes,
        )
