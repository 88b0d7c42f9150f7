"""What leaves for one conversation of each dialect, byte for byte; ``golden/`` was read against the providers' documents.

After a change on purpose: delete the file and run the test twice.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from service.models.scripted.conversation import Request
from service.models.scripted.endpoints import find
from service.models.scripted.scenario import Action, Scenario
from service.models.scripted.script import reply
from tests.unit.models.scripted.requests import BASH, chat, data_of, gemini, messages, responses

_GOLDEN = Path(__file__).parent / "golden"
_SCENARIO = Scenario(
    name="golden",
    thinking="First look — then act.",
    steps=[[Action(say="Looking — naïvely."), Action(run="ls"), Action(run="pwd")]],
)
_EXEC: dict[str, Any] = {
    "type": "function",
    "name": "exec_command",
    "parameters": {"type": "object", "properties": {"cmd": {}}},
}
_BODIES: dict[str, dict[str, Any]] = {
    "/v1/messages": messages(),
    "/v1/responses": responses(tools=[_EXEC]),
    "/v1/chat/completions": chat(tools={"bash": BASH}, stream=True, stream_options={"include_usage": True}),
    "/v1beta/models/gemini-x:streamGenerateContent": gemini(),
}


def _request(path: str) -> tuple[Request, Any]:
    endpoint = find(path)
    assert endpoint is not None
    return endpoint.read(_BODIES[path]), endpoint.wire


@pytest.mark.parametrize("path", list(_BODIES))
def test_streams_are_the_golden_ones(path: str) -> None:
    request, wire = _request(path)
    frames = b"".join(wire.stream(reply(_SCENARIO, request)))
    file = _GOLDEN / f"{path.rpartition('/')[2].replace(':', '_')}.sse"
    if not file.exists():
        file.write_bytes(frames)
        pytest.fail(f"{file.name} was written anew: read it, then run again")
    assert frames == file.read_bytes()
    assert len(data_of(frames)) >= 3


@pytest.mark.parametrize("path", list(_BODIES))
def test_whole_answers_are_the_golden_ones(path: str) -> None:
    request, wire = _request(path)
    said = json.dumps(wire.whole(reply(_SCENARIO, request)), ensure_ascii=False, indent=1) + "\n"
    file = _GOLDEN / f"{path.rpartition('/')[2].replace(':', '_')}.json"
    if not file.exists():
        file.write_text(said)
        pytest.fail(f"{file.name} was written anew: read it, then run again")
    assert said == file.read_text()
