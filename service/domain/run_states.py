"""Phases, outcomes and the one place that decides why an agent phase ended (DESIGN.md section 4).

A cause is decided from evidence of the host's side. What the launcher reported is the agent's word: it can
choose between causes that are the agent's own, and can never make a cause ours (CONTRACTS 2).
"""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    QUEUED = "queued"
    HELD = "held"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    PAUSED = "paused"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    COLLECTING = "collecting"
    GRADING = "grading"
    DONE = "done"


class Outcome(StrEnum):
    GRADED = "graded"
    ABSTAINED = "abstained"
    UNGRADED = "ungraded"
    CANCELLED = "cancelled"
    INVALIDATED = "invalidated"


class AttemptState(StrEnum):
    """States of an attempt, in order; ``lifecycle.STEPS`` maps each to the step that leaves it."""

    CLAIMED = "claimed"
    """Has a worker and a fence; nothing exists yet, or provisioning is under way."""
    BOUND = "bound"
    """``sandbox_id`` is written; the command may not have been given yet."""
    RUNNING = "running"
    """The launcher has accepted ``start``."""
    ENDED = "ended"
    """The cause is decided; the container may still exist."""
    COLLECTED = "collected"
    """The deliverable is sealed (or refused); the sandbox may still exist."""
    RELEASED = "released"
    """Terminal: nothing of the sandbox is left."""
    LOST = "lost"
    """Terminal: fenced by the watchdog or ended by infrastructure; a further attempt may follow."""


TERMINAL_ATTEMPTS = frozenset({AttemptState.RELEASED, AttemptState.LOST})

ATTEMPT_PHASE = {
    AttemptState.CLAIMED: Phase.PROVISIONING,
    AttemptState.BOUND: Phase.PROVISIONING,
    AttemptState.RUNNING: Phase.RUNNING,
    AttemptState.ENDED: Phase.COLLECTING,
    AttemptState.COLLECTED: Phase.COLLECTING,
}
"""The run's phase while its latest attempt is in a live state."""


class EndedBecause(StrEnum):
    COMPLETED = "completed"
    WALL_CLOCK = "wall_clock"
    BUDGET = "budget"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    DISK_LIMIT = "disk_limit"
    SCAFFOLD_ERROR = "scaffold_error"
    AGENT_KILLED_SANDBOX = "agent_killed_sandbox"
    SAFETY_DENIED = "safety_denied"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    SANDBOX_LOST = "sandbox_lost"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    PROVISION_FAILED = "provision_failed"
    COLLECTION_REFUSED = "collection_refused"
    INFRA_ERROR = "infra_error"


INFRASTRUCTURE = frozenset(
    {
        EndedBecause.SANDBOX_LOST,
        EndedBecause.PROVIDER_UNAVAILABLE,
        EndedBecause.PROVISION_FAILED,
        EndedBecause.INFRA_ERROR,
    }
)
"""Ours: never a score; a new attempt while the policy allows, then ``ungraded``.

``collection_refused`` is not here: only an agent can put a link where its output directory was, and were it ours,
that would buy a further attempt or take a failure out of the denominator (docs/decisions/0003).
"""

USER = frozenset({EndedBecause.STOPPED, EndedBecause.CANCELLED, EndedBecause.REFUSED})


def gradeable(cause: EndedBecause) -> bool:
    """Tell whether a deliverable left behind by this ending goes to graders."""
    return cause not in INFRASTRUCTURE and cause not in {EndedBecause.CANCELLED, EndedBecause.REFUSED}


class StopMode(StrEnum):
    FINISH = "finish"
    """The deadline becomes now + grace; the run ends as it then ends."""
    COLLECT = "collect"
    """Kill, then collect and grade what is there (``stopped``)."""
    DISCARD = "discard"
    """Kill, collect nothing (``cancelled``)."""


class Flag(StrEnum):
    PARTIAL_OUTPUT = "partial_output"
    NO_DELIVERABLE = "no_deliverable"
    RETRIED = "retried"
    ASSISTED = "assisted"
    POLICY_CHANGED = "policy_changed"
    OUTPUT_TRUNCATED = "output_truncated"
    MEMORY_LIMIT_HIT = "memory_limit_hit"
    SOFT_QUOTA = "soft_quota"
    WAITED_FOR_HOST = "waited_for_host"
    PROVIDER_TOOLS_USED = "provider_tools_used"
    USAGE_UNKNOWN = "usage_unknown"
    """At least one model request was cut before the provider said what it took."""
    COST_DECLARED = "cost_declared"
    REPLAYED = "replayed"
    EXTERNAL = "external"
    """Delivered by upload: nothing of the work was seen."""
    CONTROL = "control"
    """Its deliverable was altered, or is another's, to see whether graders notice. No table counts it unless asked to."""
    PREFLIGHT = "preflight"
    """Tries out whether an evaluation's agents can run at all. No table counts it unless asked to."""
    CONTAMINATION_SUSPECTED = "contamination_suspected"
    """What it met contains marks of its own answer key (service.domain.contamination)."""
    OVERRIDDEN = "overridden"
    """A person put another verdict in the place of one that counts. Taken away with the override."""


NO_WORK = frozenset({Flag.CONTROL, Flag.PREFLIGHT})
"""Flags of runs that are no agent's work: nobody grades, rates or counts them who did not ask for them."""


class ContainerState(StrEnum):
    RUNNING = "running"
    EXITED = "exited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ExitReport:
    """The launcher's word about the scaffold's process: exactly one of ``code`` and ``signal`` is set."""

    code: int | None
    signal: int | None
    wall_s: float
    max_rss_bytes: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when an agent phase ends. Everything but ``exit`` and ``completed`` is the host's own knowledge."""

    exit: ExitReport | None = None
    completed: bool | None = None
    """The scaffold's outcome rule applied to its exit and output; null if it did not exit."""
    container: ContainerState = ContainerState.RUNNING
    container_exit_code: int | None = None
    oom_kills: int = 0
    """Kills by the memory cgroup since the sandbox was made, or 1 where the engine reported an oom event."""
    deadline_passed: bool = False
    disk_limit: bool = False
    stop: StopMode | None = None
    engine_restarted: bool = False
    """The engine or the host restarted since ``start``, and the container did not survive it."""
    engine_error: str | None = None
    budget_exhausted: bool = False
    """The gateway refused a request because the run's budget was spent."""
    provider_failed: bool = False
    """The last model request failed on the provider's side after the gateway's own retries, or waits for providers took
    more than their share of the wall clock (CONTRACTS 6). The gateway's word, not the agent's."""
    safety_denied: bool = False
    """Our own loop ended because a provider's safety check was not confirmed."""
    silent: bool = False
    """Neither output nor a model request for longer than the scaffold's hang rule allows."""


def decide_cause(e: Evidence) -> EndedBecause:
    """Decide why the agent phase ended. First rule that applies, in the order written."""
    if e.stop is StopMode.DISCARD:
        return EndedBecause.CANCELLED
    if e.exit is not None:
        return _cause_of_exit(e)
    rules = (
        (e.stop is StopMode.COLLECT, EndedBecause.STOPPED),
        (e.budget_exhausted, EndedBecause.BUDGET),
        (e.provider_failed, EndedBecause.PROVIDER_UNAVAILABLE),
        (e.deadline_passed, EndedBecause.WALL_CLOCK),
        (e.silent, EndedBecause.SCAFFOLD_ERROR),
        (e.disk_limit, EndedBecause.DISK_LIMIT),
        (e.engine_error is not None, EndedBecause.INFRA_ERROR),
        (e.container is ContainerState.GONE or e.engine_restarted, EndedBecause.SANDBOX_LOST),
        (e.oom_kills > 0, EndedBecause.MEMORY_LIMIT),
    )
    return next((cause for holds, cause in rules if holds), EndedBecause.AGENT_KILLED_SANDBOX)


def _cause_of_exit(e: Evidence) -> EndedBecause:
    rules = (
        (bool(e.completed), EndedBecause.COMPLETED),
        (e.safety_denied, EndedBecause.SAFETY_DENIED),
        (e.budget_exhausted, EndedBecause.BUDGET),
        (e.provider_failed, EndedBecause.PROVIDER_UNAVAILABLE),
        (e.oom_kills > 0, EndedBecause.MEMORY_LIMIT),
    )
    return next((cause for holds, cause in rules if holds), EndedBecause.SCAFFOLD_ERROR)
