"""What becomes of a question to the simulated client that nobody can answer."""

from typing import Any

import pytest

from service.domain.errors import Fault
from service.lifecycle.simulated_client import NO_WORDS, SimulatedClient
from service.models.clients.reaching import refused
from service.models.messages import Answer, Ask, GatewayAway, ModelRefused


class Journal:
    """Nothing was recorded yet."""

    async def step(self, kind: str, key: str, act: Any, tell: Any = None) -> Any:
        del kind, key, tell
        return await act()


class Refusing:
    def __init__(self, status: int, code: str) -> None:
        self._error = refused(status, {"error": {"code": code}}, "said the gateway")

    async def ask(self, ask: Ask) -> Answer:
        raise self._error

    async def close(self) -> None:
        pass


def _client(status: int, code: str) -> SimulatedClient:
    journal: Any = Journal()
    return SimulatedClient(journal, Refusing(status, code), "facts", 3, "0" * 64)


@pytest.mark.parametrize("code", ["cassette_mismatch", "cassette_incomplete"])
async def test_what_a_recording_does_not_have_is_no_unanswered_question(code: str) -> None:
    found = refused(400, {"error": {"code": code}}, "said the gateway")
    assert isinstance(found, ModelRefused)
    assert found.type == "not_recorded"
    with pytest.raises(Fault, match="said the gateway") as raised:
        await _client(400, code).reply(1, "which format?", {})
    assert raised.value.type == "client_not_recorded"


async def test_a_model_that_refuses_says_nothing_and_one_that_fails_is_no_answer() -> None:
    assert (await _client(400, "bad_body").reply(1, "which format?", {})).text == NO_WORDS
    with pytest.raises(GatewayAway):
        await _client(500, "overloaded").reply(1, "which format?", {})
