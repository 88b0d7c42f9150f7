"""Who may ask, where, and how; what a hostile client gets."""

import asyncio
import json
import socket
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from service.gateway.auth import Refused, token_hash
from service.gateway.control import bind
from service.gateway.egress.serving import EgressServing
from service.gateway.endpoints import Endpoints
from service.gateway.front import Front, NoServices
from service.gateway.http_server import HttpServing
from service.gateway.sides import OwnSide, PublicSide
from service.store import blob_refs, model_requests, run_models
from service.store.request_bodies import OWNER
from service.store.tables_models import model_requests as table
from tests.integration.gateway.bench import LIMITS, TOKEN, GateBench, messages, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = "wsr_OTHEROTH_9876543210-of-another-run"


async def raw(client: httpx.AsyncClient, data: bytes) -> bytes:
    """Send bytes; return all that comes back until the other side closes, or 3 s."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 3)
    except TimeoutError:
        return b"still open"
    finally:
        writer.close()


def post(path: str = "/v1/messages", *, headers: str = "", body: bytes | None = None) -> bytes:
    data = json.dumps(messages()).encode() if body is None else body
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\ncontent-length: {len(data)}\r\n{headers}connection: close\r\n\r\n"
    return head.encode() + data


@pytest.mark.fault(40)
async def test_a_token_opens_its_own_socket_only(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    await bench.client(await bench.grant(OTHER))
    for shown, status in (
        ({"x-api-key": OTHER}, 403),
        ({"authorization": f"Bearer {OTHER}"}, 403),
        ({"x-api-key": "wsr_unknown"}, 401),
        ({"x-api-key": TOKEN, "x-goog-api-key": OTHER}, 401),
        ({"x-api-key": ""}, 401),
    ):
        client.headers.pop("x-api-key", None)
        answer = await client.post("/v1/messages", json=messages(), headers=shown)
        assert answer.status_code == status, shown
        assert answer.json()["type"] == "error"
    assert (await client.post("/v1/messages?key=" + TOKEN, json=messages())).status_code == 401
    assert not bench.asked()
    for shown in ({"x-api-key": TOKEN}, {"authorization": f"Bearer {TOKEN}"}, {"x-goog-api-key": TOKEN}):
        assert (await client.post("/v1/messages", json=messages(), headers=shown)).status_code == 200


@pytest.mark.fault(39)
async def test_after_the_end_a_token_opens_nothing_and_streams_are_cut(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-slow"
    grant = await bench.grant()
    client = await bench.client(grant)
    stream = asyncio.create_task(client.post("/v1/messages", json=messages(stream=True)))
    await until(bench.asked)
    await asyncio.sleep(0.4)
    await bench.endpoints.close((grant.run_id, grant.attempt), grant.fence)
    with pytest.raises(httpx.TransportError):
        await stream
    (row,) = await bench.ledger_of(grant)
    assert (row.state, row.usage_known) == ("finished", False)
    again = await client.post("/v1/messages", json=messages())
    assert again.status_code == 401
    assert "run_over" in again.text
    assert len(bench.asked()) == 1


async def test_the_deadline_cuts_by_itself(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-slow"
    grant = await bench.grant(seconds_left=1.0)
    client = await bench.client(grant)
    began = time.monotonic()
    with pytest.raises(httpx.TransportError):
        await client.post("/v1/messages", json=messages(stream=True))
    assert time.monotonic() - began < 3
    assert (await client.post("/v1/messages", json=messages())).status_code == 401


@pytest.mark.fault(42)
async def test_the_upstream_is_fixed_whatever_the_target_says(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    for target in (
        "/v1/..%2fmessages", "/v1/%2e%2e/messages", "//evil.test/v1/messages", "/v1//messages", "/v1/messages/..",
        "/v1/messages%00", "/anthropic/../v1/messages", "/v1\\messages", "/v1/messages%252f", "/v1/unknown",
        "/v1beta/models/..%2f..%2fx:generateContent", "/v1beta/models/a/b:generateContent",
    ):  # fmt: skip
        answer = await raw(client, post(target))
        assert answer[9:12] in (b"400", b"404"), (target, answer[:200])
    assert not bench.asked()
    await raw(client, post("http://evil.test/v1/messages", headers="x-forwarded-host: evil.test\r\n"))
    assert [one.path for one in bench.asked()] == ["/v1/messages"]


@pytest.mark.fault(45)
async def test_ambiguous_framing_is_refused(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    body = json.dumps(messages()).encode()
    for headers in (
        "transfer-encoding: chunked\r\n", "content-length: 5\r\n", "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding : chunked\r\n", "transfer-encoding: xchunked\r\n", "content-length: +5\r\n",
    ):  # fmt: skip
        answer = await raw(client, post(headers=headers, body=body))
        assert answer.startswith(b"HTTP/1.1 400"), (headers, answer[:100])
    assert not bench.asked()


async def test_odd_clients_are_answered_at_once(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    assert (await client.head("/")).status_code == 200
    assert (await client.head("/api/hello")).status_code == 200
    upgrade = b"GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n"
    assert (await raw(client, upgrade)).startswith(b"HTTP/1.1 426")
    assert (await raw(client, b"CONNECT evil.test:443 HTTP/1.1\r\nhost: x\r\n\r\n"))[9:12] in (
        b"400",
        b"401",
        b"404",
        b"426",
    )
    unknown = await client.get("/v1beta/nothing")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == 404, "in Gemini's shape"


async def test_bad_bodies_are_refused_in_the_dialects_shape(bench: GateBench) -> None:
    client = await bench.client(await bench.grant())
    for body in (b"", b"[]", b"{", b"\xff", b'{"model": NaN}', b"[" * 100_000, b'{"a":' * 100_000, b'"text"'):
        answer = await client.post("/v1/messages", content=body)
        assert answer.status_code == 400, body[:20]
        assert answer.json()["error"]["type"] == "invalid_request_error"
    big = await client.post("/v1/messages", content=b"x" * ((32 << 20) + 1))
    assert big.status_code == 413
    assert (await raw(client, post(headers="x-big: " + "a" * 70_000 + "\r\n"))) == b""
    assert not bench.asked()


@pytest.mark.fault(46)
async def test_fifty_at_once_do_not_overshoot_a_budget_of_three(bench: GateBench) -> None:
    grant = await bench.grant(budget={"max_requests": 3})
    client = await bench.client(grant)
    answers = await asyncio.gather(*(client.post("/v1/messages", json=messages()) for _ in range(50)))
    assert sorted(one.status_code for one in answers) == [200] * 3 + [400] * 47
    assert len(bench.asked()) == 3
    assert all("budget_exhausted" in one.text for one in answers if one.status_code == 400)
    assert (await bench.endpoints.ended((grant.run_id, grant.attempt))).budget_exhausted
    assert len(await bench.ledger_of(grant)) == 3


async def test_tokens_are_reserved_and_settled(bench: GateBench) -> None:
    grant = await bench.grant(budget={"max_tokens": 2300})
    client = await bench.client(grant)
    answers = await asyncio.gather(*(client.post("/v1/messages", json=messages(max_tokens=1000)) for _ in range(6)))
    (good, refused) = [[one for one in answers if one.status_code == code] for code in (200, 400)]
    rows = await bench.ledger_of(grant)
    total = sum(row.input_tokens + row.cached_input_tokens + row.cache_write_tokens + row.output_tokens for row in rows)
    assert good
    assert refused
    assert total <= 2300


async def test_a_new_gateway_knows_what_was_spent(bench: GateBench) -> None:
    grant = await bench.grant(budget={"max_requests": 2})
    client = await bench.client(grant)
    assert (await client.post("/v1/messages", json=messages())).status_code == 200
    await bench.ledger.flush()
    await bench.endpoints.shut()  # as a dead process would
    again = await bench.client(grant)
    codes = [(await again.post("/v1/messages", json=messages())).status_code for _ in range(2)]
    assert codes == [200, 400]


async def test_a_client_that_leaves_leaves_nothing_running(bench: GateBench) -> None:
    bench.key.value = "sk-scripted-slow"
    grant = await bench.grant()
    client = await bench.client(grant)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.post("/v1/messages", json=messages(stream=True)), 0.7)
    await until(lambda: bench.endpoints.state((grant.run_id, grant.attempt)).open_requests == 0)
    (row,) = await bench.ledger_of(grant)
    assert (row.error, row.provider_error, row.usage_known) == ("client_gone", False, False)
    (asked,) = bench.asked()
    await until(lambda: not asked.complete)


async def test_our_own_processes_have_a_socket(bench: GateBench, tmp_path: Any) -> None:
    async def find(project_id: str, names: list[str]) -> Any:
        async with bench.db.reading() as tx:
            assert await run_models.granted_models(tx, project_id, names) == []
        return [bench.model()]

    grant = await bench.grant("wsr_LOOPLOOP_of-a-loop")
    await bench.endpoints.open(grant, {})
    sock = bind(tmp_path / "models.sock")
    front = Front(bench.forwarding, NoServices(), OwnSide(bench.endpoints, "service-token", find, 5).admit)
    listening = await HttpServing(16).start(front, sock)
    transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "models.sock"))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=10) as client:
        own = {"x-api-key": "service-token", "x-workstead-project": grant.project_id, "x-workstead-purpose": "judge",
               "x-workstead-model": "test/anthropic"}  # fmt: skip
        of_one = {**own, "x-workstead-subject": "grd_1"}
        assert (await client.post("/v1/messages", json=messages(), headers=of_one)).status_code == 200
        assert (
            await client.post("/v1/messages", json=messages(), headers={"x-api-key": "wsr_LOOPLOOP_of-a-loop"})
        ).status_code == 200
        assert (await client.post("/v1/messages", json=messages(), headers={"x-api-key": "other"})).status_code == 401
        for wrong in ({"x-workstead-purpose": "agents"}, {"x-workstead-subject": "g" * 65}):
            assert (await client.post("/v1/messages", json=messages(), headers={**own, **wrong})).status_code == 400
    await listening.close()
    assert len(await bench.ledger_of(grant)) == 1, "the judge's is in no run"
    await bench.ledger.flush()
    async with bench.db.reading() as tx:
        (cost,) = (await model_requests.cost_of(tx, grant.project_id, ["grd_1", "grd_2"])).items()
        of_it = select(table.c.id, table.c.state, table.c.request_blob).where(table.c.subject == "grd_1")
        (row,) = (await tx.execute(of_it)).all()
        sizes = await blob_refs.project_sizes(tx, grant.project_id, [row.request_blob])
        assert await blob_refs.owned_size(tx, OWNER, row.id, row.request_blob) == sizes[row.request_blob] > 0
    assert cost[0] == "grd_1"
    assert cost[1].usd is not None
    assert (cost[1].requests, cost[1].usd > 0, cost[1].unknown) == (1, True, 0)


async def test_the_public_side_knows_remote_drivers_only(bench: GateBench) -> None:
    remote = "wsr_REMOTERE_public"
    await bench.endpoints.open(await bench.grant(), {})
    await bench.endpoints.open(await bench.grant(remote, public=True), {})
    sock = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    listening = await HttpServing(16).start(
        Front(bench.forwarding, NoServices(), PublicSide(bench.endpoints).admit), sock
    )
    async with httpx.AsyncClient(base_url=url, timeout=10) as client:
        assert (await client.post("/v1/messages", json=messages(), headers={"x-api-key": remote})).status_code == 200
        assert (await client.post("/v1/messages", json=messages(), headers={"x-api-key": TOKEN})).status_code == 401
    await listening.close()


async def test_a_second_token_of_the_attempt_works_as_well(bench: GateBench) -> None:
    grant = await bench.grant()
    client = await bench.client(grant)
    renewed = grant.model_copy(update={"token_hashes": [token_hash("second")], "fence": grant.fence + 1})
    assert await bench.endpoints.open(renewed, {}) == [80]
    for token in (TOKEN, "second"):
        assert (await client.post("/v1/messages", json=messages(), headers={"x-api-key": token})).status_code == 200


async def test_a_gateway_that_has_just_started_sends_nobody_away(bench: GateBench) -> None:
    """Its predecessor was killed: a loop may ask before the worker has told the new one which runs there are."""
    parts = (bench.forwarding, NoServices(), bench.ledger, HttpServing(16))
    fresh = Endpoints(*parts, replace(LIMITS, settle_s=60.0), EgressServing(bench.db))
    with pytest.raises(Refused) as early:
        fresh.by_token("wsr_EARLYEAR_loop", public=False)
    assert (early.value.status, early.value.type) == (503, "gateway_starting")
    await fresh.open(await bench.grant("wsr_EARLYEAR_loop"), {})
    assert fresh.by_token("wsr_EARLYEAR_loop", public=False)
    settled = Endpoints(*parts, LIMITS, EgressServing(bench.db))
    with pytest.raises(Refused) as late:
        settled.by_token("wsr_EARLYEAR_loop", public=False)
    assert (late.value.status, late.value.type) == (401, "token_invalid")
    await fresh.shut()
