"""Real programs, recorded once and run again from the recording: the same story, while no provider is there."""

from dataclasses import dataclass
from typing import Any

import pytest

from service.domain.events import Event
from service.gateway.cassettes.projection import canonical
from service.models.scripted.shipped import REPORT, SUMMARY
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, LabModel

pytestmark = [pytest.mark.timeout(900)]

LIMITS = {"memory_bytes": 1 << 30, "disk_bytes": 512 << 20, "wall_clock_s": 200}


@dataclass(frozen=True)
class Case:
    scaffold: str
    dialect: str
    path: str
    """Which of the provider's endpoints it asks."""
    settings: dict[str, Any]


CASES = {
    "anthropic": Case("claude-code@latest", "anthropic", "/v1/messages", {}),
    "responses": Case("codex@latest", "openai", "/v1/responses", {}),
    "chat": Case("opencode@latest", "openai", "/v1/chat/completions", {}),
    "gemini": Case("tool-agent@1", "gemini", "/v1beta/models/gemini-2.5-pro:", {}),
}


@pytest.fixture(scope="module")
def recorded(there: Lab) -> dict[str, tuple[LabModel, Record]]:
    """One run of each dialect, all under way at once; the provider is gone when they have ended."""
    task = make_task(there.stack, {"notes/inputs.txt": b"few\n"}, LIMITS, graders=[])
    models = {name: there.model(case.dialect) for name, case in CASES.items()}
    runs = {
        name: submit(there.stack, task, there.agent(case.scaffold, models[name], **case.settings))
        for name, case in CASES.items()
    }
    found = {name: (models[name], record(there.stack, run_id, 300)) for name, run_id in runs.items()}
    there.provider.stop()
    return found


def story(seen: Record) -> list[dict[str, object]]:
    found = (Event(seen.run["id"], e["seq"], e["attempt"], e["type"], e["ts"], e["payload"]) for e in seen.events)
    return canonical(found)


@pytest.mark.parametrize("name", CASES)
def test_a_replay_tells_the_same_story_with_no_provider(
    name: str, there: Lab, recorded: dict[str, tuple[LabModel, Record]]
) -> None:
    model, first = recorded[name]
    assert first.run["ended_because"] == "completed", (first.run, first.output(1), first.output(1, "stderr"))
    paths = {exchange.path for exchange in model.asked()}
    assert any(path.startswith(CASES[name].path) for path in paths), paths
    again = there.stack.call("POST", f"/v1/runs/{first.run['id']}/rerun", json={"mode": "replay"})["id"]
    seen = record(there.stack, again, 300)
    notes = [event["payload"] for event in seen.of("note")]
    assert seen.run["ended_because"] == "completed", (notes, seen.output(1), seen.output(1, "stderr"))
    assert (seen.run["replay_of"], seen.run["flags"]) == (first.run["id"], ["replayed"])
    assert story(seen) == story(first)
    for path, data in (("report.csv", REPORT), ("summary.md", SUMMARY)):
        answer = there.stack.http.get(f"/v1/runs/{again}/artifacts/output/{path}")
        assert answer.text.rstrip("\n") == data.rstrip("\n"), path
