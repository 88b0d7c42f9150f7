"""The cases: what the provider does, what is done to the run, and what is expected of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.domain.agents import Driver
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.scaffolds.conformance import judging
from service.scaffolds.conformance.seen import Seen
from service.scaffolds.conformance.task import INSTRUCTION

_OURS = frozenset({Driver.KIT, Driver.LOOP})
_REMOTE = frozenset({Driver.REMOTE})


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    expectation: str
    judge: Callable[[Seen], list[str]]
    drivers: frozenset[Driver] = _OURS
    scenario: str = "conformance-success"
    """Of the scripted provider."""
    instruction: str = INSTRUCTION
    wall_s: float = 240.0
    patience_s: float = 20.0
    """What one request waits for the provider."""
    stop: bool = False
    """The run is stopped (``collect``) once it is at work."""
    quick: bool = False
    screen: bool | None = False
    """For scaffolds that drive a screen, or a shell; null: for both."""
    dialect: Dialect | None = None
    """What the model speaks; null: whichever the scaffold takes first."""


CASES = (
    Case("success", "completes, delivers both files, and the ledger's usage is what the provider sent", judging.success,
         quick=True),
    Case("401", "ends by itself as provider_unavailable: a rejected key is not the agent's failure", judging.refused,
         scenario="e401", quick=True, screen=None),
    Case("429", "waits out two 429 with Retry-After and completes", judging.waited, scenario="conformance-limited", quick=True),
    Case("500", "ends by itself as provider_unavailable once the provider's patience is over", judging.refused,
         scenario="e500", patience_s=3, screen=None),
    Case("timeout", "is ended by the wall clock while its tool runs", judging.timeout, scenario="conformance-hold",
         wall_s=90),
    Case("stop", f"is stopped within {judging.STOP_S:.0f} s while its tool runs", judging.stopped,
         scenario="conformance-hold", stop=True),
    Case("huge_output", "20 MB from a tool and 1 MB of text do not keep it from completing", judging.flooded,
         scenario="conformance-flood"),
    Case("remote_success", "the client claims the run, does the work and finishes", judging.delivered, _REMOTE,
         quick=True, screen=None),
    Case("remote_timeout", "the wall clock ends the run although the client goes on", judging.remote_timeout, _REMOTE,
         instruction="Claim this run and keep it: send heartbeats, do not finish. The wall clock is to end it.\n",
         wall_s=30, screen=None),
    Case("remote_stop", "a stop ends the run while the client goes on", judging.remote_stopped, _REMOTE,
         instruction="Claim this run and keep it: send heartbeats, do not finish. It will be stopped.\n", stop=True,
         screen=None),
    Case("remote_lease_lost", "a client that falls silent loses its claim; claimed again, the run is finished",
         judging.lease_lost, _REMOTE, wall_s=600, screen=None,
         instruction="Claim this run, send no heartbeat until the claim is lost, claim it again. Then:\n\n" + INSTRUCTION),
    *(Case(f"desktop_success_{dialect.value}", "is shown the screen, works on it and delivers both files", judging.on_screen,
           scenario="conformance-desktop", wall_s=400, screen=True, dialect=dialect, quick=dialect is Dialect.ANTHROPIC)
      for dialect in (Dialect.ANTHROPIC, Dialect.OPENAI, Dialect.GEMINI)),
    Case("desktop_unknown_action", "is told that there is no such action, goes on and completes", judging.on_screen,
         scenario="conformance-desktop-unknown", wall_s=400, screen=True),
    Case("desktop_timeout", "is ended by the wall clock while it acts", judging.timeout,
         scenario="conformance-desktop-hold", wall_s=90, screen=True),
    Case("desktop_stop", f"is stopped within {judging.STOP_S:.0f} s while it acts", judging.stopped,
         scenario="conformance-desktop-hold", stop=True, screen=True),
    Case("remote_desktop", "the client claims the run, looks at its screen, acts on it, does the work and finishes",
         judging.remote_on_screen, _REMOTE, wall_s=600, screen=True,
         instruction="Claim this run, look at its screen and do an action on it. Then:\n\n" + INSTRUCTION),
)  # fmt: skip


def chosen(names: Sequence[str], driver: Driver, *, screen: bool, quick: bool) -> list[Case]:
    """Return the cases of a scaffold with this driver, of a screen or a shell: all, the named ones, or the quick ones.

    Raises Invalid ``unknown_case`` for a name that is no case of it, ``no_conformance`` where there are none.
    """
    fitting = [case for case in CASES if driver in case.drivers and case.screen in (None, screen)]
    if not fitting:
        raise Invalid("no_conformance", f"there is nothing to try out of a scaffold that {driver} drives")
    by_name = {case.name: case for case in fitting}
    if unknown := [name for name in names if name not in by_name]:
        raise Invalid("unknown_case", f"no case {unknown[0]!r}", cases=sorted(by_name))
    some = [by_name[name] for name in dict.fromkeys(names)] if names else fitting
    return [case for case in some if case.quick] if quick and not names else some
