"""The life of a run, one module per step::

    submit → queue → provision → drive → stream → collect (and release) → grade → report

``stop`` and ``delete`` enter from the side. A run's truth is its row and its latest attempt's row; ``STEPS`` says which
step takes a live attempt on from its state. Every step is find-or-do: whoever repeats it after a crash goes on.
"""

from collections.abc import Awaitable, Callable, Mapping

from service.domain.run_states import AttemptState
from service.lifecycle.collect import collect
from service.lifecycle.context import Context
from service.lifecycle.drive import drive
from service.lifecycle.provision import provision
from service.lifecycle.release import release
from service.store.rows import AttemptRow

Step = Callable[[Context, AttemptRow], Awaitable[None]]

STEPS: Mapping[AttemptState, Step | None] = {
    AttemptState.CLAIMED: provision,
    AttemptState.BOUND: provision,
    AttemptState.RUNNING: drive,
    AttemptState.ENDED: collect,
    AttemptState.COLLECTED: release,
    AttemptState.RELEASED: None,
    AttemptState.LOST: None,
}
"""State of an attempt → the step that leaves it; None where nothing is left to do."""
