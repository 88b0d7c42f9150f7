from service.domain.run_states import TERMINAL_ATTEMPTS, AttemptState
from service.lifecycle import STEPS


def test_every_state_has_its_step_once_and_terminal_ones_have_none() -> None:
    assert list(STEPS) == list(AttemptState)
    assert {state for state, step in STEPS.items() if step is None} == TERMINAL_ATTEMPTS
