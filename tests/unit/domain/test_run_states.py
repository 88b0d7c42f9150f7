"""The one place that decides a cause (faults 84, 114, 116): whose it is, and what nobody can buy."""

from dataclasses import replace
from itertools import product

import pytest

from service.domain.run_states import (
    ATTEMPT_PHASE,
    INFRASTRUCTURE,
    TERMINAL_ATTEMPTS,
    USER,
    AttemptState,
    ContainerState,
    EndedBecause,
    Evidence,
    ExitReport,
    StopMode,
    decide_cause,
    gradeable,
)

OK = ExitReport(0, None, 1.0, None)
KILLED = ExitReport(None, 9, 1.0, None)
DEAD = Evidence(container=ContainerState.EXITED, container_exit_code=137)


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (Evidence(exit=OK, completed=True), EndedBecause.COMPLETED),
        (Evidence(exit=OK, completed=True, oom_kills=2), EndedBecause.COMPLETED),
        (Evidence(exit=OK, completed=True, deadline_passed=True), EndedBecause.COMPLETED),
        (Evidence(exit=OK, completed=False), EndedBecause.SCAFFOLD_ERROR),
        (Evidence(exit=KILLED, completed=False), EndedBecause.SCAFFOLD_ERROR),
        (Evidence(exit=KILLED, completed=False, oom_kills=1), EndedBecause.MEMORY_LIMIT),
        (Evidence(exit=KILLED, completed=False, safety_denied=True), EndedBecause.SAFETY_DENIED),
        (Evidence(exit=KILLED, completed=False, safety_denied=True, oom_kills=1), EndedBecause.SAFETY_DENIED),
        (Evidence(exit=OK, completed=True, stop=StopMode.DISCARD), EndedBecause.CANCELLED),
        (Evidence(exit=OK, completed=True, stop=StopMode.COLLECT), EndedBecause.COMPLETED),
        (Evidence(stop=StopMode.COLLECT), EndedBecause.STOPPED),
        (Evidence(stop=StopMode.FINISH, deadline_passed=True), EndedBecause.WALL_CLOCK),
        (Evidence(deadline_passed=True), EndedBecause.WALL_CLOCK),
        (Evidence(disk_limit=True), EndedBecause.DISK_LIMIT),
        (DEAD, EndedBecause.AGENT_KILLED_SANDBOX),
        (replace(DEAD, oom_kills=1), EndedBecause.MEMORY_LIMIT),
        (replace(DEAD, deadline_passed=True), EndedBecause.WALL_CLOCK),
        (replace(DEAD, engine_restarted=True), EndedBecause.SANDBOX_LOST),
        (Evidence(container=ContainerState.GONE), EndedBecause.SANDBOX_LOST),
        (replace(DEAD, engine_error="500"), EndedBecause.INFRA_ERROR),
    ],
)
def test_causes(evidence: Evidence, cause: EndedBecause) -> None:
    assert decide_cause(evidence) is cause


def test_nothing_that_the_sandbox_says_makes_a_cause_ours() -> None:
    """Whatever the launcher reports while the host knows of no fault of its own: never a further attempt."""
    exits = [None, OK, KILLED, ExitReport(137, None, 0, 0), ExitReport(-1, None, -1, 0)]
    states = [ContainerState.RUNNING, ContainerState.EXITED]
    for exit, completed, state, oom, disk in product(exits, (None, True, False), states, (0, 3), (True, False)):
        e = Evidence(exit=exit, completed=completed, container=state, oom_kills=oom, disk_limit=disk)
        assert decide_cause(e) not in INFRASTRUCTURE


def test_an_infrastructure_cause_is_never_gradeable_and_the_agents_always_is() -> None:
    for cause in EndedBecause:
        assert not (gradeable(cause) and cause in INFRASTRUCTURE)
    assert {c for c in EndedBecause if not gradeable(c)} == INFRASTRUCTURE | (USER - {EndedBecause.STOPPED})


def test_every_state_of_an_attempt_is_live_or_terminal() -> None:
    assert set(ATTEMPT_PHASE) | TERMINAL_ATTEMPTS == set(AttemptState)
    assert not set(ATTEMPT_PHASE) & TERMINAL_ATTEMPTS
