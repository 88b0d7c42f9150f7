"""Real agents that speak the Agent Client Protocol, from the manifests of docs/agent-programs.md; see test_cli_agents."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_images.build import build
from sandbox_images.build_host import this_machine
from sandbox_images.catalogue import load
from sandbox_images.engine import Engine
from service.models.scripted.shipped import REPORT, SUMMARY
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
PAGE = (Path(__file__).parents[2] / "docs" / "agent-programs.md").read_text()
MANIFESTS = {
    manifest["name"]: manifest
    for manifest in map(tomllib.loads, re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    if manifest["kind"] == "acp"
}
NAMES = ("opencode-acp", "gemini-acp")


@pytest.fixture(scope="module")
def there() -> Iterator[Lab]:
    engine = Engine()
    try:
        build(engine, load(), this_machine(), [MANIFESTS[name]["kit"] for name in NAMES])
    finally:
        engine.close()
    with lab() as made:
        for name in NAMES:
            made.stack.call("POST", "/v1/scaffolds", json=MANIFESTS[name])
        yield made


def driven(there: Lab, name: str, scenario: str, wall_clock_s: int = 300, **settings: Any) -> tuple[str, Record]:
    manifest = MANIFESTS[name]
    limits = {"memory_bytes": 1 << 30, "disk_bytes": 512 << 20, "wall_clock_s": wall_clock_s}
    task = make_task(there.stack, {"notes/inputs.txt": b"The inputs are few.\n"}, limits, graders=[])
    model = there.model(manifest["dialect"], scenario)
    run_id = submit(there.stack, task, there.agent(f"{name}@{manifest['version']}", model, **settings))
    return run_id, record(there.stack, run_id, 700)


def final(seen: Record) -> tuple[str, str]:
    (event,) = seen.of("agent.final")
    return event["payload"]["status"], event["payload"]["reason"]


@pytest.mark.parametrize("name", NAMES)
def test_delivers_the_right_bytes(name: str, there: Lab) -> None:
    run_id, seen = driven(there, name, "success")
    assert seen.run["ended_because"] == "completed", (seen.run, seen.output(1), seen.output(1, "stderr"))
    for path, data in (("report.csv", REPORT.encode()), ("summary.md", SUMMARY.encode())):
        answer = there.stack.http.get(f"/v1/runs/{run_id}/artifacts/output/{path}")
        assert answer.content.rstrip(b"\n") == data.rstrip(b"\n"), path
    assert final(seen) == ("success", "end_turn")
    assert len(seen.of("tool.call")) == len(seen.of("tool.result")) >= 3
    assert seen.of("agent.message")
    assert {event["payload"]["decision"] for event in seen.of("agent.permission")} == {"allow"}
    finished = [e["payload"] for e in seen.of("model.request") if e["payload"]["state"] == "finished"]
    assert finished
    assert all(one["usage_known"] for one in finished)


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_is_refused_is_no_success(name: str, there: Lab) -> None:
    _, seen = driven(there, name, "e401")
    assert seen.run["ended_because"] not in {"completed", "wall_clock"}, (seen.run, seen.output(1))


@pytest.mark.parametrize("name", NAMES)
def test_the_end_of_time_cancels_the_session(name: str, there: Lab) -> None:
    _, seen = driven(there, name, "sleep", 40)
    assert seen.run["ended_because"] == "wall_clock"
    assert final(seen) in {("error", "cancelled"), ("error", "stopped")}
