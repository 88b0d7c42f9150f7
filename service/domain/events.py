"""Event types. Readers ignore unknown types and fields; ``v`` is in every event (CONTRACTS 4)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

EVENT_VERSION = 1


class EventType(StrEnum):
    RUN_PHASE = "run.phase"
    """payload: phase, outcome, ended_because"""
    ATTEMPT_STARTED = "attempt.started"
    """payload: attempt, host, sandbox"""
    ATTEMPT_ENDED = "attempt.ended"
    """payload: ended_because, evidence"""
    OUTPUT = "output"
    """payload: stream, offset, bytes, text, lossy"""
    OUTPUT_TRUNCATED = "output.truncated"
    """payload: stream, kept_bytes (in events); the true count is in output.closed"""
    OUTPUT_CLOSED = "output.closed"
    """payload: stream, total_bytes, log_bytes, log_sha256"""
    AGENT_MESSAGE = "agent.message"
    """payload: a JSON object printed by a ``jsonl`` scaffold, as it stands"""
    AGENT_THINKING = "agent.thinking"
    """payload: text"""
    AGENT_WARNING = "agent.warning"
    """payload: text"""
    AGENT_USAGE = "agent.usage"
    """What the agent says it used: a second opinion. payload: as domain.models.TokenUsage, cost_usd?"""
    AGENT_FINAL = "agent.final"
    """payload: status (success | error | limit), text, reason"""
    AGENT_PERMISSION = "agent.permission"
    """The agent asked whether it may; a policy answered. payload: id, title, kind, decision, option"""
    AGENT_PLAN = "agent.plan"
    """payload: entries (content, priority, status)"""
    TOOL_CALL = "tool.call"
    """payload: id, name, arguments"""
    TOOL_RESULT = "tool.result"
    """payload: id, output, is_error"""
    MODEL_REQUEST = "model.request"
    """payload: request_id, state (started | finished), then as a row of model_requests"""
    PROVIDER_TOOLS = "provider.tools"
    """payload: request_id, denied (list of types), used (type → count)"""
    PROVIDER_WAIT = "provider.wait"
    """payload: request_id, seconds, reason"""
    EGRESS = "egress.decision"
    """payload: host, port, method, allowed, reason, path (http only)"""
    SERVICE_CALL = "service.call"
    """payload: call_id, n, then as a row of service_calls: service, method, path, status, error, bytes, units, cost_usd …"""
    CLIENT_MESSAGE = "client.message"
    """Between agent and simulated client. payload: n, direction (to_client | to_agent), text, attachments"""
    LOOP_STEP = "loop.step"
    """A step of our own loop as it happened, so that a successor need not repeat it. payload: step, kind, value"""
    DESKTOP_ACTION = "desktop.action"
    """A batch on the run's screen. payload: id, by (loop | remote | person), actions (unified, each with raw), results,
    before, after, images (pictures: sha256, format, width, height, size_bytes), title, windows?, error, detail?, interrupted?,
    took_s; of remote drivers and people also state, checks, ending"""
    CONFIRMATION = "confirmation"
    """payload: id, state (pending | acknowledged | denied), by, checks, intent"""
    VIEW = "desktop.view"
    """Somebody watches the screen. payload: action (opened | closed), viewer, control, dropped (inputs)"""
    DESKTOP_INPUT = "desktop.input"
    """What a person did on the screen, at most one event a second. payload: viewer, records (each a key: keysym, down | x,
    y, buttons | text, characters | clipboard_bytes), left_out (records beyond a batch's bound)"""
    RUN_READY = "run.ready"
    """A remote driver may claim the run. payload: driver"""
    DRIVER = "driver"
    """payload: action (claimed | lost | released | finished), holder"""
    RESOURCES = "resources"
    """payload: memory_bytes, cpu_s, disk_used_bytes, oom_kills"""
    STOP_REQUESTED = "stop.requested"
    """payload: mode"""
    DELIVERABLE = "deliverable.sealed"
    """payload: digest, files, bytes, problems"""
    DELIVERABLE_CHECKED = "deliverable.checked"
    """payload: digest, files, problems (files with problems), version (of the integrity report)"""
    VERDICT = "verdict"
    """payload: grading_id, method, state, score, max_score"""
    VALIDITY = "run.validity"
    """A person made the run void, or took that back. payload: outcome (as it is now), was, by, reason"""
    CONTAMINATION = "contamination"
    """The run met marks of its own answer key. payload: version, hits (their number), kinds, places (at most 20)"""
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended. ``(run, attempt, source, source_offset)`` is unique: a repeated append is a no-op."""

    type: str
    payload: dict[str, Any]
    source: str
    source_offset: int
    ts: datetime


@dataclass(frozen=True, slots=True)
class Event:
    run_id: str
    seq: int
    attempt: int
    type: str
    ts: datetime
    payload: dict[str, Any]
    source: str = ""
    source_offset: int = 0
    v: int = field(default=EVENT_VERSION)
