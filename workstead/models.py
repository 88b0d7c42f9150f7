"""What the API answers, as this version knows it. Unknown fields are kept in ``model_extra``; enums are plain strings and may grow.

Times are RFC 3339 UTC strings parsed to aware datetimes; ``_s`` are seconds, ``_bytes`` bytes; unknown is ``None``.
"""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workstead.errors import ProtocolError


class Model(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Read an answer. Raises ProtocolError for what is none of this kind."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = "/".join(map(str, first["loc"]))
            raise ProtocolError(
                f"not a {cls.__name__.lower()} as this client knows it: {where}: {first['msg']}"
            ) from error


class TaskRef(Model):
    id: str
    name: str = ""
    digest: str | None = None


class AgentRef(Model):
    id: str
    label: str = ""


class Progress(Model):
    last_seq: int = 0
    last_event_at: datetime | None = None
    turns: int | None = None
    tool_calls: int | None = None
    silent_s: float | None = None
    doing: str | None = None


class DeliverableSummary(Model):
    digest: str | None = None
    files: int = 0
    bytes: int = 0
    problems: int = 0


class VerdictSummary(Model):
    state: str = "pending"
    plan: str | None = None
    score: float | None = None
    max_score: float | None = None
    fraction: float | None = None
    """score / max_score, a fraction."""
    graded_at: datetime | None = None

    @property
    def passed(self) -> bool | None:
        """Full marks; None while there is no score."""
        return None if self.score is None or self.max_score is None else self.score >= self.max_score


class Run(Model):
    id: str
    revision: int
    phase: str
    """queued | held | provisioning | running | paused | awaiting_confirmation | collecting | grading | done | …"""
    hold: dict[str, Any] | None = None
    outcome: str | None = None
    """graded | abstained | ungraded | cancelled | invalidated | …, null until done."""
    ended_because: str | None = None
    task: TaskRef
    agent: AgentRef
    sample: int = 1
    attempt: int = 0
    derived_from: str | None = None
    """Run of which this is a rerun."""
    replay_of: str | None = None
    """Run whose recording answers in place of the models."""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    graded_at: datetime | None = None
    updated_at: datetime | None = None
    deadline_at: datetime | None = None
    queue_s: float | None = None
    provision_s: float | None = None
    wall_s: float | None = None
    progress: Progress = Field(default_factory=Progress)
    usage: dict[str, Any] = Field(default_factory=dict[str, Any])
    resources: dict[str, Any] = Field(default_factory=dict[str, Any])
    deliverable: DeliverableSummary = Field(default_factory=DeliverableSummary)
    verdict: VerdictSummary = Field(default_factory=VerdictSummary)
    flags: list[str] = Field(default_factory=list[str])
    labels: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def done(self) -> bool:
        return self.phase == "done"


class SafetyCheck(Model):
    id: str
    code: str
    message: str


class Confirmation(Model):
    """What a run waits for a person to confirm (phase ``awaiting_confirmation``)."""

    id: str
    run_id: str
    attempt: int
    state: str
    """pending | acknowledged | denied | lapsed"""
    checks: list[SafetyCheck]
    intent: str
    decided_by: str | None
    created_at: datetime
    decided_at: datetime | None


class Event(Model):
    """One numbered fact about a run; ``seq`` is dense per run, over all attempts."""

    seq: int
    attempt: int = 0
    type: str
    ts: datetime | None = None
    v: int = 1
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])


class Artifact(Model):
    path: str
    kind: str = "file"
    """``file`` has content; ``directory`` and ``skipped_…`` are entries only."""
    reason: str | None = None
    """Why it was not taken, in words."""
    size_bytes: int = 0
    sha256: str | None = None
    mime: str | None = None
    link_target: str | None = None
    opens: bool | None = None
    """Whether it opens as what it claims; None where nobody looked (yet)."""
    problems: list[str] | None = None
    """Types of what is wrong with it; None without an integrity report."""


class FileProblem(Model):
    type: str
    """empty | truncated | type_mismatch | cannot_open | malformed | encrypted | bomb | timeout | too_large_to_check | …"""
    detail: str = ""
    """In words; may quote the file, so it is untrusted text."""


class FileCheck(Model):
    path: str
    size_bytes: int = 0
    claims: str | None = None
    """The name's extension."""
    sniffed: str | None = None
    """What the content is."""
    opens: bool | None = None
    """None where nobody looked."""
    problems: list[FileProblem] = Field(default_factory=list[FileProblem])
    facts: dict[str, Any] = Field(default_factory=dict[str, Any])
    """pages, sheets, rows, width, height, duration_s …; what was not seen is None."""


class Integrity(Model):
    """Whether the files of a deliverable open as what they claim to be."""

    run_id: str
    state: str
    """pending | ready | unavailable | …"""
    cause: str | None = None
    digest: str | None = None
    version: str | None = None
    problems: int | None = None
    """Files with which something is wrong; None unless ready."""
    files: list[FileCheck] = Field(default_factory=list[FileCheck])
    not_listed: int = 0


class Criterion(Model):
    """What was decided on one test, question or rubric item."""

    id: str
    passed: bool | None = None
    score: float | None = None
    max_score: float | None = None
    cause: str | None = None
    """Why it did not pass, typed by the method."""
    reason: str | None = None
    detail: dict[str, Any] = Field(default_factory=dict[str, Any])


class DeadLetter(Model):
    """Failed gradings of one cause and method."""

    cause: str | None = None
    method: str = ""
    gradings: int = 0
    runs: int = 0
    oldest_at: datetime | None = None
    newest_at: datetime | None = None


class Grading(Model):
    id: str
    run_id: str | None = None
    method: str = ""
    state: str = "pending"
    round: int = 1
    primary: bool = True
    score: float | None = None
    max_score: float | None = None
    cause: str | None = None
    criteria: list[Criterion] = Field(default_factory=list[Criterion])
    """The first of them; ``client.gradings.criteria`` yields all."""
    criteria_total: int | None = None


class Attempt(Model):
    """One try of a run; a further one exists only because infrastructure failed."""

    run_id: str
    n: int
    state: str = ""
    ended_because: str | None = None
    host_id: str | None = None
    runtime: str | None = None
    environment_image: str | None = None
    kit_image: str | None = None
    argv: list[str] | None = None
    env: dict[str, str] | None = None
    """Secrets redacted."""
    evidence: dict[str, Any] | None = None
    logs: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Sealed raw logs: stream → ``total_bytes``, ``log_bytes``."""
    created_at: datetime | None = None
    started_at: datetime | None = None
    deadline_at: datetime | None = None
    ended_at: datetime | None = None


class Task(Model):
    id: str
    name: str
    digest: str
    manifest: dict[str, Any] | None = None


class ClientFacts(Model):
    """What only a task's simulated client knows, and where it comes from."""

    task_id: str
    source: str
    """imported | generated"""
    path: str
    sha256: str
    size_bytes: int
    text: str
    model: str | None = None
    """Catalogue name of who made it; None, as all that follows, where it was imported."""
    reported_model: str | None = None
    template: str | None = None
    template_sha256: str | None = None
    prompt_sha256: str | None = None
    seed: int | None = None
    usage: dict[str, Any] | None = None
    author: str | None = None
    operation_id: str | None = None
    created_at: datetime | None = None


class Benchmark(Model):
    id: str
    name: str
    version: str
    digest: str | None = None
    revision: int = 0
    created_at: datetime | None = None
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    counts: dict[str, Any] = Field(default_factory=dict[str, Any])
    """``items``, ``ok``, ``disputed``, ``quarantined``; ``checked``: state that a check found → items."""
    facets: dict[str, Any] = Field(default_factory=dict[str, Any])
    head: dict[str, Any] | None = None
    """source, notice, deny_list, canaries, policies, groupings …"""
    derived: dict[str, Any] | None = None
    """parent, rule, overlays and what the rule met; None: imported."""


class BenchmarkItem(Model):
    key: str
    position: int = 0
    task: TaskRef | None = None
    """None where no task could be made."""
    status: str = "ok"
    """ok | disputed | quarantined | …"""
    problems: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    checked: dict[str, Any] | None = None


class Operation(Model):
    """Work of the server in the background."""

    id: str
    kind: str
    state: str
    """queued | running | succeeded | failed | cancelled | …"""
    done: int = 0
    total: int | None = None
    unit: str = "items"
    log: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None
    """Members of a problem (RFC 9457); None unless it failed."""
    revision: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


class Scaffold(Model):
    id: str
    name: str
    version: str
    digest: str | None = None
    conformance: dict[str, Any] | None = None

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.version}"


class ConformanceResult(Model):
    """The newest result of one conformance case."""

    case: str
    result: str
    expected: str = ""
    wrong: list[str] = []
    seen: str | None = None
    argv: list[str] = []
    run_id: str | None = None
    detail: dict[str, Any] = {}
    at: str | None = None


class Agent(Model):
    id: str
    label: str
    digest: str | None = None
    scaffold: str | None = None
    model: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])


class Token(Model):
    id: str
    prefix: str = ""
    kind: str = "api"
    scopes: list[str] = Field(default_factory=list[str])
    note: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    secret: str | None = Field(default=None, repr=False)
    """Only in the answer that creates it."""


class Project(Model):
    id: str
    name: str
    untrusted: bool = False
    max_runs: int | None = None
    """Most live runs at once; None = no limit of its own."""
    created_at: datetime | None = None


class Host(Model):
    id: str
    state: str = ""
    """up | draining | lost | …"""
    cordoned: bool = False
    slots: int = 0
    slots_limit: int | None = None
    used: int = 0
    runtimes: list[str] = Field(default_factory=list[str])
    environments: list[str] = Field(default_factory=list[str])
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    version: str | None = None
    cpus: int | None = None
    memory: dict[str, int | None] = Field(default_factory=dict[str, int | None])
    """total_bytes, usable_bytes (may be promised in all), promised_bytes (limits of live runs)."""
    disk: dict[str, int | None] = Field(default_factory=dict[str, int | None])
    """free_bytes, total_bytes, watermark_bytes, promised_bytes."""
    heartbeat_at: datetime | None = None
    heartbeat_age_s: float | None = None
    reasons: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """What keeps it from taking a run just now: ``reason``, ``detail``."""


class Change(Model):
    """A resource that changed, as it is now; ``body`` has its most needed members, by ``kind``."""

    kind: str
    id: str
    revision: int = 0
    deleted: bool = False
    cursor: str
    """Goes on after this one; keep it to resume."""
    body: dict[str, Any] | None = None


class Ticket(Model):
    ticket: str
    """Good once, as ``?ticket=…``."""
    path: str
    expires_at: datetime | None = None


class Webhook(Model):
    id: str
    url: str = ""
    events: list[str] = Field(default_factory=list[str])
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    note: str = ""
    enabled: bool = True
    failures: int = 0
    """In a row, over all its deliveries."""
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    secret: str | None = Field(default=None, repr=False)
    """Only in the answer that creates it or gives it a new one."""


class Delivery(Model):
    id: str
    """The receiver's ``webhook-id``."""
    type: str = ""
    state: str = ""
    """pending | delivered | dead | …"""
    tries: int = 0
    last_status: int | None = None
    last_error: str | None = None
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])
    created_at: datetime | None = None
    next_at: datetime | None = None
    ended_at: datetime | None = None


class Me(Model):
    project_id: str
    token_id: str | None = None
    scopes: list[str] = Field(default_factory=list[str])
    note: str | None = None
    expires_at: datetime | None = None
