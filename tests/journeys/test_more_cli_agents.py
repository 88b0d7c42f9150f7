"""OpenCode, and the programs that few use, through the whole service; Claude Code and Codex are in test_cli_agents."""

from typing import Any

import pytest

from sandbox_images.build import build
from sandbox_images.build_host import this_machine
from sandbox_images.catalogue import load
from sandbox_images.engine import Engine
from service.models.scripted.shipped import REPORT, SUMMARY
from service.scaffolds.shipped import find
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, LabModel

PROGRAMS = {"opencode": 3, "openclaw": None, "openhands": 4, "mini-swe-agent": 4, "gemini-cli": 3}
"""Program → tools that it says it called; null: it says nothing of them."""
DIALECTS = {"gemini-cli": ["gemini"]}
_BOTH = ["openai", "anthropic"]
_RARE = [name for name in PROGRAMS if name != "opencode"]


def _row(program: str, dialect: str) -> Any:
    quick = (program, dialect) == ("opencode", "openai")
    return pytest.param(program, dialect, marks=[] if quick else [pytest.mark.slow])


_SPOKEN = [_row(program, dialect) for program in PROGRAMS for dialect in DIALECTS.get(program, _BOTH)]
KINDS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


@pytest.fixture(autouse=True)
def kit(request: pytest.FixtureRequest) -> None:
    """The kits of rare programs are built on demand."""
    program = request.node.callspec.params["program"]
    if program in _RARE:
        shipped = find(f"{program}@latest")
        assert shipped is not None
        assert shipped.kit is not None
        engine = Engine()
        try:
            build(engine, load(), this_machine(), [shipped.kit])
        finally:
            engine.close()


def started(there: Lab, program: str, model: LabModel, wall_clock_s: int, **fields: Any) -> str:
    limits = {"memory_bytes": 1 << 30, "disk_bytes": 512 << 20, "wall_clock_s": wall_clock_s}
    settings = fields.pop("settings", {})
    task = make_task(there.stack, {"notes/inputs.txt": b"The inputs are few.\n"}, limits, graders=[])
    return submit(there.stack, task, there.agent(f"{program}@latest", model, **settings), **fields)


def ledger(seen: Record) -> dict[str, int]:
    ended = [e["payload"] for e in seen.of("model.request") if e["payload"]["state"] == "finished"]
    assert all(one["usage_known"] for one in ended)
    return {name: sum(one[name] for one in ended) for name in KINDS}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("program", "dialect"), _SPOKEN)
def test_delivers_the_right_bytes_and_is_measured(program: str, dialect: str, there: Lab) -> None:
    model = there.model(dialect)
    run_id = started(there, program, model, 600, settings={"effort": "max"})
    seen = record(there.stack, run_id, 700)
    assert seen.run["ended_because"] == "completed", (seen.run, seen.output(1), seen.output(1, "stderr"))
    for path, data in (("report.csv", REPORT.encode()), ("summary.md", SUMMARY.encode())):
        answer = there.stack.http.get(f"/v1/runs/{run_id}/artifacts/output/{path}")
        # A shell's `printf` and an editor differ in the last newline only.
        assert answer.content.rstrip(b"\n") == data.rstrip(b"\n"), path
    kinds = [event["type"] for event in seen.events]
    assert kinds.count("tool.call") == kinds.count("tool.result") + (program == "mini-swe-agent")
    assert PROGRAMS[program] in {None, kinds.count("tool.call")}
    assert kinds.count("agent.final") == 1
    told = model.told().model_dump()
    assert ledger(seen) == told
    (said,) = seen.of("agent.usage")
    assert _inputs(said["payload"]) == _inputs(told)
    assert said["payload"]["output_tokens"] == told["output_tokens"]
    (attempt,) = there.stack.call("GET", f"/v1/runs/{run_id}/attempts")["data"]
    assert attempt["provenance"]["effort"] == "high"
    assert model.key not in there.stack.http.get(f"/v1/runs/{run_id}/events?limit=500").text


def _inputs(used: dict[str, int]) -> tuple[int, int]:
    """Input that was read from a cache, and all the rest: not every program tells what was written to one."""
    return used["cached_input_tokens"], used["input_tokens"] + used["cache_write_tokens"]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_key_that_is_refused_is_no_success(program: str, there: Lab) -> None:
    run_id = started(there, program, there.model(DIALECTS.get(program, _BOTH)[0], "e401"), 300)
    seen = record(there.stack, run_id, 400)
    assert seen.run["ended_because"] not in {"completed", "wall_clock"}, seen.run


# One starts slowly; two end a command by themselves after 30 s.
_WALL_S = {"openclaw": 90, "openhands": 25, "mini-swe-agent": 25}


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_end_of_time_ends_it(program: str, there: Lab) -> None:
    model = there.model(DIALECTS.get(program, _BOTH)[0], "sleep")
    run_id = started(there, program, model, _WALL_S.get(program, 40))
    seen = record(there.stack, run_id, 400)
    assert seen.run["ended_because"] == "wall_clock"
    assert seen.of("model.request")
