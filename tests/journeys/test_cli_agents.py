"""The real programs through the whole service: sandbox without network, gateway, scripted provider, deliverable."""

from typing import Any

import pytest

from service.models.scripted.scenario import Action, Scenario
from service.models.scripted.shipped import REPORT, SUMMARY
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, LabModel

PROGRAMS = {"claude-code": "anthropic", "codex": "openai"}
NOTE = b"The inputs are few.\n"
PLACES = ("base", "root", "foreign")


def task(there: Lab, **fields: Any) -> str:
    limits = {"memory_bytes": 1 << 30, "disk_bytes": 256 << 20, "wall_clock_s": 120, **fields.pop("limits", {})}
    return make_task(there.stack, {"notes/inputs.txt": NOTE}, limits, graders=[], **fields)


@pytest.fixture(scope="module")
def started(there: Lab) -> dict[tuple[str, str], tuple[LabModel, str]]:
    """Every program in every environment, all under way at once."""
    runs: dict[tuple[str, str], tuple[LabModel, str]] = {}
    for place in PLACES:
        made = task(there, environment=place)
        for program, dialect in PROGRAMS.items():
            model = there.model(dialect)
            agent = there.agent(f"{program}@latest", model, effort="max", system_prompt="Be brief.")
            runs[program, place] = model, submit(there.stack, made, agent)
    return runs


def delivered(there: Lab, run_id: str, path: str) -> bytes:
    answer = there.stack.http.get(f"/v1/runs/{run_id}/artifacts/{path}")
    assert answer.is_success, answer.text
    return answer.content


def ledger(seen: Record) -> dict[str, int]:
    """Sum the tokens of the gateway's ledger."""
    ended = [e["payload"] for e in seen.of("model.request") if e["payload"]["state"] == "finished"]
    assert all(one["usage_known"] for one in ended)
    kinds = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return {name: sum(one[name] for one in ended) for name in kinds}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_delivers_the_right_bytes_and_is_measured(
    program: str, place: str, there: Lab, started: dict[tuple[str, str], tuple[LabModel, str]]
) -> None:
    model, run_id = started[program, place]
    seen = record(there.stack, run_id, 300)
    assert seen.run["ended_because"] == "completed", (seen.run, seen.output(1), seen.output(1, "stderr"))
    assert delivered(there, run_id, "output/report.csv") == REPORT.encode()
    assert delivered(there, run_id, "output/summary.md") == SUMMARY.encode()
    kinds = [event["type"] for event in seen.events]
    assert (kinds.count("tool.call"), kinds.count("tool.result"), kinds.count("agent.final")) == (3, 3, 1)
    # Token for token: the provider's own word, the gateway's ledger, and the program's.
    (said,) = seen.of("agent.usage")
    told = model.told().model_dump()
    assert ledger(seen) == told
    assert {name: said["payload"][name] for name in told} == told
    (attempt,) = there.stack.call("GET", f"/v1/runs/{run_id}/attempts")["data"]
    assert attempt["provenance"]["effort"] == "high"
    assert model.key not in there.stack.http.get(f"/v1/runs/{run_id}/events?limit=500").text


@pytest.mark.timeout(400)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_spent_budget_is_final_for_the_program(program: str, there: Lab) -> None:
    model = there.model(PROGRAMS[program], "endless")
    run_id = submit(there.stack, task(there), there.agent(f"{program}@latest", model), budget={"max_requests": 3})
    seen = record(there.stack, run_id, 300)
    assert seen.run["ended_because"] == "budget"
    assert len(model.asked()) == 3
    assert len(there.stack.call("GET", f"/v1/runs/{run_id}/attempts")["data"]) == 1


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_end_of_time_lets_the_program_sum_up(there: Lab) -> None:
    """It is told by INT and says what it used; whatever it exits with, the wall clock is the cause."""
    model = there.model("anthropic", Scenario(name="waits", steps=[Action(run="tail -f /dev/null")]))
    made = task(there, limits={"wall_clock_s": 45})
    seen = record(there.stack, submit(there.stack, made, there.agent("claude-code@latest", model)), 300)
    assert seen.run["ended_because"] == "wall_clock"
    (final,) = seen.of("agent.final")
    assert (final["payload"]["status"], final["payload"]["reason"]) == ("error", "aborted_tools")
    (said,) = seen.of("agent.usage")
    told = model.told().model_dump()
    assert {name: said["payload"][name] for name in told} == told
