"""The whole path of a run: submit to verdict."""

import json
from typing import Any

import pytest

from service.domain.run_states import AttemptState, EndedBecause, Flag, Outcome, Phase
from service.domain.verdicts import VerdictState
from tests.integration.lifecycle.stage import Stage


async def test_a_command_is_run_collected_and_graded(stage: Stage) -> None:
    code = (
        "import json, os; rows = open('input.csv').read().split(); print(open('.home/instruction.md').read());"
        "print('token' if os.environ['WORKSTEAD_RUN_TOKEN'].startswith('wsr_') else 'none');"
        "json.dump({'total': sum(map(int, rows)), 'name': 'Zürich'}, open('output/answers.json', 'w'))"
    )
    run = await stage.run(await stage.task(), await stage.agent(code=code))
    assert (run.phase, run.outcome, run.ended_because) == (Phase.DONE, Outcome.GRADED, EndedBecause.COMPLETED)
    assert (run.score, run.max_score, run.verdict_state) == (2.0, 2.0, VerdictState.GRADED)
    assert await stage.output(run.id) == "Add up input.csv.\ntoken\n"
    assert run.deliverable_files == 1
    assert None not in (run.wall_s, run.provision_s, run.queue_s)
    (attempt,) = await stage.attempts(run.id)
    assert attempt.state is AttemptState.RELEASED
    assert (attempt.env or {})["WORKSTEAD_RUN_TOKEN"] == "redacted"
    assert attempt.logs["stdout"]["bytes"] == len("Add up input.csv.\ntoken\n")
    assert not stage.machine.sandboxes
    types = [e.type for e in await stage.events(run.id) if e.type not in ("output", "resources")]
    assert types == [
        "run.phase", "run.phase", "attempt.started", "run.phase", "attempt.ended", "run.phase", "output.closed",
        "output.closed", "deliverable.sealed", "run.phase", "verdict", "run.phase",
    ]  # fmt: skip


async def test_the_oracle_passes_and_nop_does_not(stage: Stage) -> None:
    task = await stage.task()
    oracle = await stage.run(task, await stage.agent("oracle", kind="oracle"))
    nop = await stage.run(task, await stage.agent("nop", kind="nop"))
    assert (oracle.outcome, oracle.score) == (Outcome.GRADED, 2.0)
    assert (nop.outcome, nop.score) == (Outcome.GRADED, 0.0)
    assert nop.flags == (Flag.NO_DELIVERABLE, Flag.SOFT_QUOTA) or set(nop.flags) == {
        Flag.NO_DELIVERABLE,
        Flag.SOFT_QUOTA,
    }
    assert [(await stage.attempts(r.id))[0].attestation["reference_solution"] for r in (oracle, nop)] == [True, False]  # pyright: ignore[reportOptionalSubscript]


async def test_a_run_without_graders_ends_ungraded(stage: Stage) -> None:
    run = await stage.run(await stage.task(graders=[]), await stage.agent())
    assert (run.phase, run.outcome, run.ended_because) == (Phase.DONE, Outcome.UNGRADED, EndedBecause.COMPLETED)
    assert run.deliverable_files == 1


@pytest.mark.parametrize(
    ("code", "fields", "limits", "cause"),
    [
        ("raise SystemExit(3)", {}, {}, EndedBecause.SCAFFOLD_ERROR),
        ("raise SystemExit(3)", {"outcome": {"exit_codes": [3]}}, {}, EndedBecause.COMPLETED),
        ("pass", {"outcome": {"require_files": ["output/report.md"]}}, {}, EndedBecause.SCAFFOLD_ERROR),
        ("import time; time.sleep(60)", {}, {"wall_clock_s": 0.5}, EndedBecause.WALL_CLOCK),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", {}, {}, EndedBecause.SCAFFOLD_ERROR),
        ("open('output/a', 'w').write('x' * 5000)", {}, {"deliverable_bytes": 4000}, EndedBecause.OUTPUT_LIMIT),
        ("import os; os.rmdir('output'); os.symlink('/etc', 'output')", {}, {}, EndedBecause.COLLECTION_REFUSED),
    ],
)  # fmt: skip
async def test_the_agents_endings_are_graded(
    stage: Stage, code: str, fields: dict[str, Any], limits: dict[str, float], cause: EndedBecause
) -> None:
    run = await stage.run(await stage.task(), await stage.agent(code=code, **fields), limits=limits)
    assert (run.outcome, run.ended_because, run.attempt) == (Outcome.GRADED, cause, 1)
    assert (run.score, run.max_score) == (0.0, 2.0)


async def test_messages_of_a_jsonl_scaffold_are_events(stage: Stage) -> None:
    lines = [{"type": "message", "text": "hello"}, {"type": "tool_call", "name": "bash"}]
    code = f"import json\nfor x in {lines!r}: print(json.dumps(x), flush=True)\nprint('plain')"
    run = await stage.run(await stage.task(), await stage.agent(code=code, parser="jsonl"))
    assert [e.payload for e in await stage.events(run.id, "agent.message", "tool.call")] == lines
    assert (run.turns, run.tool_calls) == (1, 1)
    assert json.loads((await stage.output(run.id)).splitlines()[0]) == lines[0]
