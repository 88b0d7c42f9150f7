"""Each fault of a provider, and each signal, for the three programs that most people use: what becomes of the run.

Everything is under way at once: the faults take their time, and no run may suffer from another's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from service.models.scripted.scenario import Action, Fault, FaultKind, Scenario
from service.models.scripted.shipped import REPORT, SUMMARY, success_steps
from service.scaffolds.shipped import find
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, LabModel, lab

pytestmark = pytest.mark.slow
PROGRAMS = {"claude-code": "anthropic", "codex": "openai", "opencode": "openai"}
PATIENCE_S = 5
WALL_S, SIGNAL_WALL_S, LONGEST_LADDER_S = 240, 75, 90
_NOWHERE = "http://127.0.0.1:9"
"""The port of `discard`, on which nothing listens."""
_WAITS = Scenario(
    # The program does not end by itself, whether it waits for its tool or has gone on to ask what to do meanwhile.
    name="waits",
    steps=[Action(run="tail -f /dev/null")],
    faults=[Fault(kind=FaultKind.STALL, turn=1)],
)
_CUT_TWICE = Scenario(name="cut-twice", steps=success_steps(), faults=[Fault(kind=FaultKind.CUT, times=2)])


@dataclass(frozen=True)
class Row:
    scenario: str | Scenario
    ended: str
    base_url: str | None = None
    signal: str | None = None
    """The one step of the stop ladder."""


ROWS = {
    "success": Row("success", "completed"),
    "400": Row("e400", "scaffold_error"),
    "401": Row("e401", "provider_unavailable"),
    "429": Row("e429", "provider_unavailable"),
    "429 twice": Row("e429-twice", "completed"),
    "500": Row("e500", "provider_unavailable"),
    "unreachable": Row("success", "provider_unavailable", base_url=_NOWHERE),
    "stream cut each time": Row("cut", "provider_unavailable"),
    "stream cut twice": Row(_CUT_TWICE, "completed"),
    "SIGTERM in a tool": Row(_WAITS, "wall_clock", signal="TERM"),
    "SIGINT in a tool": Row(_WAITS, "wall_clock", signal="INT"),
}
Started = dict[tuple[str, str], tuple[LabModel, str]]


@pytest.fixture(scope="module")
def there() -> Iterator[Lab]:
    with lab(WORKSTEAD_WORKER__SLOTS="6") as made:
        yield made


@pytest.fixture(scope="module")
def started(there: Lab, request: pytest.FixtureRequest) -> Started:
    """Start what was chosen of the table, and no more."""
    here = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    pairs = [(str(item.callspec.params["program"]), str(item.callspec.params["name"])) for item in here]
    return {(program, name): _start(there, program, ROWS[name]) for program, name in pairs}


def _start(there: Lab, program: str, row: Row) -> tuple[LabModel, str]:
    fields = {} if row.base_url is None else {"base_url": row.base_url}
    model = there.model(PROGRAMS[program], row.scenario, **fields)
    wall_s = WALL_S if row.signal is None else SIGNAL_WALL_S
    limits = {"memory_bytes": 1 << 30, "disk_bytes": 256 << 20, "wall_clock_s": wall_s}
    task = make_task(there.stack, {"notes/inputs.txt": b"The inputs are few.\n"}, limits, graders=[])
    scaffold = f"{program}@latest" if row.signal is None else _with_ladder(there, program, row.signal)
    agent = there.agent(scaffold, model)
    return model, submit(there.stack, task, agent, max_attempts=1, budget={"provider_patience_s": PATIENCE_S})


def _with_ladder(there: Lab, program: str, signal: str) -> str:
    """Register the program with a ladder of one long step: a program that does not end by it is seen to take all of it."""
    shipped = find(f"{program}@latest")
    assert shipped is not None
    changed = {"name": f"{program}-{signal.lower()}", "stop": [{"signal": signal, "wait_s": LONGEST_LADDER_S}]}
    made = there.stack.call("POST", "/v1/scaffolds", json=shipped.model_dump(mode="json") | changed)
    return f"{made['name']}@{made['version']}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_becomes_of_the_run(
    program: str, name: str, there: Lab, started: Started, record_property: Callable[[str, object], None]
) -> None:
    model, run_id = started[program, name]
    seen = record(there.stack, run_id, 600)
    record_property("seen", f"{seen.run['ended_because']}, {len(model.asked())} requests, {seen.run['wall_s']} s")
    assert seen.run["ended_because"] == ROWS[name].ended, (seen.run, seen.output(1)[-2000:], seen.output(1, "stderr"))
    assert len(there.stack.call("GET", f"/v1/runs/{run_id}/attempts")["data"]) == 1
    # Exactly the answers that the provider did not end are of unknown usage, and the rest is counted to the token.
    requests = [event["payload"] for event in seen.of("model.request") if event["payload"]["state"] == "finished"]
    assert sum(not one["usage_known"] for one in requests) == _cut(model)
    assert _counted(requests) == model.told().model_dump()
    _FURTHER.get(name, _nothing)(there, program, seen, model)


def _cut(model: LabModel) -> int:
    """Count the answers that the program lost; the gateway's own probes of a failing provider name no user agent."""
    asked = (exchange for exchange in model.asked() if "user-agent" in exchange.headers)
    return sum(exchange.status == 200 and not exchange.complete for exchange in asked)


def _counted(requests: list[dict[str, Any]]) -> dict[str, int]:
    kinds = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return {kind: sum(one[kind] or 0 for one in requests if one["usage_known"]) for kind in kinds}


def _nothing(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    assert model.asked() == []
    assert seen.of("model.request")


def _worked(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    for path, data in (("report.csv", REPORT.encode()), ("summary.md", SUMMARY.encode())):
        answer = there.stack.http.get(f"/v1/runs/{seen.run['id']}/artifacts/output/{path}")
        assert answer.content.rstrip(b"\n") == data.rstrip(b"\n"), path


def _refused(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    """It was asked, and the program did not go on asking."""
    assert 1 <= len(model.asked()) <= _MOST_ASKED
    assert seen.of("agent.final") == [] or seen.of("agent.final")[0]["payload"]["status"] == "error"


def _waited(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    _worked(there, program, seen, model)
    assert 429 in {exchange.status for exchange in model.asked()}


def _cut_again(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    _worked(there, program, seen, model)
    assert _cut(model) == 2


def _obeyed(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    """It ended by the signal, long before the ladder was over."""
    at = {event["payload"]["phase"]: datetime.fromisoformat(event["ts"]) for event in seen.of("run.phase")}
    took = (at["collecting"] - at["running"]).total_seconds()
    assert SIGNAL_WALL_S <= took < SIGNAL_WALL_S + LONGEST_LADDER_S / 2


def _summed_up(there: Lab, program: str, seen: Record, model: LabModel) -> None:
    _obeyed(there, program, seen, model)
    if program == "claude-code":
        (final,) = seen.of("agent.final")
        assert (final["payload"]["status"], final["payload"]["reason"]) == ("error", "aborted_tools")


_MOST_ASKED = 40
_FURTHER: dict[str, Callable[[Lab, str, Record, LabModel], None]] = {
    "success": _worked,
    "429 twice": _waited,
    "stream cut twice": _cut_again,
    "SIGTERM in a tool": _obeyed,
    "SIGINT in a tool": _summed_up,
    **dict.fromkeys(("400", "401", "429", "500", "stream cut each time"), _refused),
}
