"""Faults of the wire, seen by a client that looks at bytes."""

import json
import time

import httpx
import pytest

from service.models.scripted.scenario import Action, Fault, FaultKind, Scenario
from service.models.scripted.server import Scripted

_CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Do it"}]}


def _post(provider: Scripted, key: str, **more: object) -> httpx.Response:
    headers = {"authorization": f"Bearer sk-scripted-{key}"}
    return httpx.post(f"{provider.url}/v1/chat/completions", json=_CHAT | more, headers=headers, timeout=10)


def _read(provider: Scripted, key: str, got: list[bytes], timeout: float = 10) -> None:
    url, headers = f"{provider.url}/v1/chat/completions", {"authorization": f"Bearer sk-scripted-{key}"}
    with httpx.stream("POST", url, json=_CHAT, headers=headers, timeout=timeout) as answer:
        for piece in answer.iter_raw():
            got.append(piece)  # noqa: PERF402 - kept also when the stream fails


def test_the_same_request_with_its_fields_in_another_order_is_the_same_request(provider: Scripted) -> None:
    """Codex writes some objects in a new order each time; its second try is to find the fault over."""
    headers = {"authorization": "Bearer sk-scripted-e500-once.order"}
    turned = dict(reversed(_CHAT.items()))
    answers = [
        httpx.post(f"{provider.url}/v1/chat/completions", json=each, headers=headers, timeout=10)
        for each in (_CHAT, turned)
    ]
    assert [answer.status_code for answer in answers] == [500, 200]


def test_a_reset_comes_before_any_byte(provider: Scripted) -> None:
    with pytest.raises(httpx.ReadError):
        _post(provider, "reset")


def test_a_cut_stream_has_begun_and_lacks_its_end(provider: Scripted) -> None:
    got: list[bytes] = []
    with pytest.raises(httpx.RemoteProtocolError):
        _read(provider, "cut", got)
    assert b"".join(got).startswith(b"data: {")
    assert b"[DONE]" not in b"".join(got)
    assert not provider.requests()[-1].complete


@pytest.mark.parametrize(
    ("scenario", "until", "complete"), [("text", b"[DONE]\n\n", True), ("slow", b"data: {", False)]
)
def test_complete_is_what_somebody_read_to_the_dialects_end(
    provider: Scripted, scenario: str, until: bytes, complete: bool
) -> None:
    """SDKs hang up at the dialect's end, and HTTP's own end may still be on its way then."""
    for _ in range(20 if complete else 1):
        url, headers = f"{provider.url}/v1/chat/completions", {"authorization": f"Bearer sk-scripted-{scenario}"}
        with httpx.stream("POST", url, json=_CHAT, headers=headers, timeout=10) as answer:
            got = b""
            for piece in answer.iter_raw():
                got += piece
                if until in got:
                    break
        assert provider.requests()[-1].complete is complete
    time.sleep(0 if complete else 2)
    assert provider.requests()[-1].complete is complete


def test_a_stalled_stream_says_nothing_more(provider: Scripted) -> None:
    got: list[bytes] = []
    with pytest.raises(httpx.ReadTimeout):
        _read(provider, "stalled", got, timeout=0.5)
    assert got


def test_a_slow_stream_takes_its_time(provider: Scripted) -> None:
    begun = time.monotonic()
    assert b"[DONE]" in _post(provider, "slow").content
    assert time.monotonic() - begun > 0.8


def test_split_pieces_cut_characters_and_frames(provider: Scripted) -> None:
    got: list[bytes] = []
    _read(provider, "split", got)
    assert b"".join(got).endswith(b"[DONE]\n\n")
    assert any(piece[:1] in {b"\x80", b"\x94", b"\x9c", b"\x93"} for piece in got), "no piece began inside a character"


def test_a_huge_body_is_huge(provider: Scripted) -> None:
    provider.add(Scenario(name="huge", faults=[Fault(kind=FaultKind.HUGE_BODY, size=3_000_000)]))
    assert len(_post(provider, "huge").content) > 3_000_000
    assert json.loads(_post(provider, "huge", stream=False).content)["padding"]


def test_the_key_comes_back_where_it_should_not(provider: Scripted) -> None:
    answer = _post(provider, "echo-key.secret")
    assert answer.headers["x-echoed"] == "sk-scripted-echo-key.secret"
    said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in said if each["choices"])
    assert "sk-scripted-echo-key.secret" in text


def test_no_usage_is_told_unless_asked_for(provider: Scripted) -> None:
    assert b'"usage"' not in _post(provider, "text").content
    assert b'"usage"' in _post(provider, "text", stream_options={"include_usage": True}).content
    assert b'"usage"' not in _post(provider, "no-usage", stream_options={"include_usage": True}).content
    assert provider.requests()[-1].usage is None


def test_an_outage_meets_everyone_and_passes(provider: Scripted) -> None:
    provider.outage(Fault(kind=FaultKind.STATUS, status=503))
    assert _post(provider, "text").status_code == 503
    provider.outage(None)
    assert _post(provider, "text").status_code == 200


def test_a_model_may_name_the_scenario(provider: Scripted) -> None:
    assert "no tools" in _post(provider, "e500", model="m@text", stream=False).text


def test_without_a_credential_nothing_is_told(provider: Scripted) -> None:
    assert httpx.post(f"{provider.url}/v1/chat/completions", json=_CHAT).status_code == 401


def test_another_process_reads_the_log_and_adds_scenarios(provider: Scripted) -> None:
    added = Scenario(name="from-afar", steps=[Action(run="true")], final="Told.")
    answer = httpx.post(f"{provider.url}/scripted/scenarios", content=added.model_dump_json())
    assert answer.status_code == 204
    assert "Told." in _post(provider, "from-afar", stream=False).text
    last = httpx.get(f"{provider.url}/scripted/requests").json()[-1]
    assert (last["scenario"], last["status"], last["usage"]["output_tokens"]) == ("from-afar", 200, 50)


def test_a_websocket_is_refused_at_once(provider: Scripted) -> None:
    upgrade = {"upgrade": "websocket", "connection": "upgrade"}
    assert httpx.get(f"{provider.url}/v1/responses", headers=upgrade).status_code == 426
