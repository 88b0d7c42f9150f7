"""Gateway services: the key goes in outside, nothing but the allowed calls leaves, every call is an event."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import text

from service.api.run_view import Usage, run_view
from service.domain.credentials import Purpose
from service.domain.grants import Grant, GrantedService
from service.domain.policies import RunBudget
from service.domain.services import ServiceSpec
from service.gateway.cassettes.replay import StoredTapes
from service.gateway.credentials import Vault
from service.gateway.egress.serving import EgressServing
from service.gateway.endpoints import Endpoints
from service.gateway.http_server import HttpServing
from service.gateway.services import GatewayServices
from service.store import credentials, events, runs, service_calls, services
from service.store.rows_requests import NewCall
from service.store.sealed_box import OpeningKey
from tests.api.helpers import served
from tests.integration.gateway.bench import LIMITS, TOKEN, GateBench

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = "svc-key-NeverShown-0123456789"
SPEC: dict[str, Any] = {
    "name": "search",
    "credential": {"place": "header", "name": "x-subscription"},
    "allow": [{"methods": ["GET"], "path": "/web/*"}, {"methods": ["POST"], "path": "/mcp"}],
    "price_per_call_usd": "0.005",
    "price_as_of": "2026-11-01",
    "max_calls_per_run": 3,
}


class Somewhere:
    """An upstream that tells what it was asked, and echoes the key as if it wanted it stolen."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.status, self.location, self.repeat = 200, "", 1
        self.encoding, self.endless, self.echo = "", False, ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        self.asked.append(
            {"path": scope["raw_path"].decode(), "query": scope["query_string"].decode(), "headers": headers,
             "body": message.get("body", b"")}
        )  # fmt: skip
        key = headers.get("x-subscription", "") or headers.get("authorization", "")
        down = [(b"content-type", b"text/plain"), (b"set-cookie", b"a=b"), (b"x-key", key.encode())]
        if self.location:
            down.append((b"location", self.location.encode()))
        if self.encoding:
            down.append((b"content-encoding", self.encoding.encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": down})
        if self.endless:
            await _until_gone(receive, send)
            return
        half = len(key) // 2
        for piece in (f"found 42; you said {key[:half]}", f"{key[half:]} ok" * self.repeat, self.echo):
            await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Any, send: Any) -> None:
    gone = asyncio.ensure_future(receive())
    while not gone.done():
        await send({"type": "http.response.body", "body": b"more ", "more_body": True})
        await asyncio.wait({gone}, timeout=0.01)


class Rig:
    def __init__(self, bench: GateBench, somewhere: Somewhere, url: str) -> None:
        self.bench, self.somewhere, self.url = bench, somewhere, url
        self.vault = Vault(bench.db, OpeningKey(bytes(range(32))))
        tapes = StoredTapes(bench.db, bench.blobs)
        self.services = GatewayServices(bench.db, bench.ledger, bench.upstream, self.vault, LIMITS, bench.keeper, tapes)
        self.endpoints = Endpoints(
            bench.forwarding, self.services, bench.ledger, HttpServing(64), LIMITS, EgressServing(bench.db)
        )
        self.run_id = ""
        self.grant: Any = None
        self.clients: list[httpx.AsyncClient] = []

    async def client(self, *, private: bool = True, budget: RunBudget | None = None, **spec: Any) -> httpx.AsyncClient:
        grant = await self.bench.grant(budget=budget or RunBudget())
        async with self.bench.db.transaction() as tx:
            await tx.execute(text("DELETE FROM services"))
            await credentials.register_key(tx, OpeningKey(bytes(range(32))).id, OpeningKey(bytes(range(32))).public)
            made = ServiceSpec.model_validate(SPEC | {"base_url": self.url} | spec)
            row, _ = await services.create(tx, grant.project_id, made, private=private)
            await credentials.put(tx, "service", grant.project_id, row.id, Purpose.SERVICE, SECRET)
        return await self.open(grant.model_copy(update={"services": [GrantedService(id=row.id, name=row.name)]}))

    async def open(self, grant: Grant, token: str = TOKEN) -> httpx.AsyncClient:
        self.run_id, self.grant = grant.run_id, grant
        listener = socket.create_server(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await self.endpoints.open(grant, {80: listener})
        client = httpx.AsyncClient(base_url=base, headers={"x-api-key": token}, timeout=20, trust_env=False)
        self.clients.append(client)
        return client

    async def usage(self) -> Usage:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            found = await runs.get(tx, self.grant.project_id, self.run_id)
        assert found is not None
        return run_view(found).usage

    async def calls(self) -> list[dict[str, Any]]:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            return [e.payload for e in await events.read(tx, self.run_id, 0, 100, ["service.call"])]


@pytest_asyncio.fixture(loop_scope="module")
async def rig(bench: GateBench) -> AsyncIterator[Rig]:
    somewhere = Somewhere()
    async with served(somewhere) as url:  # pyright: ignore[reportArgumentType] - any ASGI application
        made = Rig(bench, somewhere, f"{url}/v2")
        yield made
        for client in made.clients:
            await client.aclose()
        await made.endpoints.shut()
        await bench.ledger.flush()


@pytest.mark.fault(41)
@pytest.mark.fault(43)
async def test_the_key_goes_in_outside_and_does_not_come_back(rig: Rig) -> None:
    coded = base64.b64encode(SECRET.encode()).decode()
    rig.somewhere.echo = f" {coded}"
    client = await rig.client(headers={"x-version": "7"})
    answer = await client.get(
        "/services/search/web/cats?q=a%20b&n=1", headers={"cookie": "s=1", "x-forwarded-for": "1.2.3.4"}
    )
    assert answer.status_code == 200
    assert answer.text.startswith("found 42; you said [redacted]***")
    assert "* ok" in answer.text
    assert SECRET not in answer.text + str(answer.headers)
    assert coded[:30] not in answer.text
    assert "set-cookie" not in answer.headers
    (asked,) = rig.somewhere.asked
    assert (asked["path"], asked["query"]) == ("/v2/web/cats", "q=a+b&n=1")
    sent = asked["headers"]
    assert (sent["x-subscription"], sent["x-version"]) == (SECRET, "7")
    assert not {"x-api-key", "cookie", "x-forwarded-for", "authorization"} & set(sent)
    (call,) = await rig.calls()
    assert (call["service"], call["method"], call["path"], call["status"]) == ("search", "GET", "/web/cats", 200)
    assert (call["cost_usd"], call["price_date"]) == ("0.005", "2026-11-01")
    assert SECRET not in str(call)


async def test_scoped_packages_of_npm_are_reached(rig: Rig) -> None:
    client = await rig.client(allow=[{"path": "/@*%2f*"}, {"path": "/**"}])
    for path in ("/@scope%2fname", "/@scope/name/-/name-1.0.0.tgz"):
        assert (await client.get(f"/services/search{path}")).status_code == 200
    assert [asked["path"] for asked in rig.somewhere.asked] == ["/v2/@scope%2fname", "/v2/@scope/name/-/name-1.0.0.tgz"]
    assert (await client.get("/services/search/@scope%2fname%2f-")).status_code == 403


@pytest.mark.fault(42)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/services/search/admin", 403),
        ("DELETE", "/services/search/web/1", 403),
        ("GET", "/services/search/web/1/2", 403),
        ("GET", "/services/other/web/1", 404),
        ("GET", "/services/search", 404),
        ("GET", "/services/search/web/%2e%2e", 400),
        ("GET", "/services/search/web/a%2fb", 403),
        ("GET", "/services/search%2fweb/1", 404),
        ("GET", "/services/search/web/a%2f%2e%2e", 400),
    ],
)
async def test_nothing_else_leaves(rig: Rig, method: str, path: str, status: int) -> None:
    client = await rig.client()
    answer = await client.request(method, path)
    assert answer.status_code == status, answer.text
    assert rig.somewhere.asked == []


async def test_a_credential_in_the_query_cannot_be_doubled(rig: Rig) -> None:
    client = await rig.client(credential={"place": "query", "name": "apiKey"})
    await client.get("/services/search/web/1?APIKEY=mine&apiKey=mine&q=1")
    assert rig.somewhere.asked[0]["query"] == f"q=1&apiKey={SECRET}"


async def test_calls_are_counted_over_attempts_and_end(rig: Rig) -> None:
    client = await rig.client()
    answers = await asyncio.gather(*(client.post("/services/search/mcp", json={"n": n}) for n in range(10)))
    assert sorted(a.status_code for a in answers) == [200] * 3 + [429] * 7
    assert len(rig.somewhere.asked) == 3
    assert len(await rig.calls()) == 3
    async with rig.bench.db.reading() as tx:
        calls, usd = await service_calls.spent(tx, rig.run_id, "search")
    assert (calls, usd) == (3, Decimal("0.015"))


@pytest.mark.fault(45)
async def test_redirects_are_not_followed_and_private_addresses_not_called(rig: Rig) -> None:
    rig.somewhere.status, rig.somewhere.location = 302, f"{rig.url}/web/2"
    client = await rig.client()
    answer = await client.get("/services/search/web/1")
    assert (answer.status_code, len(rig.somewhere.asked)) == (502, 1)
    assert "location" not in answer.headers
    (call,) = await rig.calls()
    assert call["error"] == "upstream_redirect"


@pytest.mark.fault(51)
async def test_a_private_address_needs_an_operator(rig: Rig) -> None:
    client = await rig.client(private=False)
    answer = await client.get("/services/search/web/1")
    assert (answer.status_code, rig.somewhere.asked) == (502, [])
    assert (await rig.calls())[0]["error"] == "upstream_not_public"


async def test_an_answer_that_is_too_long_is_cut(rig: Rig) -> None:
    rig.somewhere.repeat = 10_000
    client = await rig.client(max_answer_bytes=1000)
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/services/search/web/1")
    assert (await rig.calls())[0]["error"] == "answer_too_large"


IMAGES: dict[str, Any] = {
    "price_per_call_usd": "0.01",
    "price_per_unit": {"field": "n", "usd": "0.04"},
    "max_calls_per_run": None,
}


async def test_what_services_cost_is_in_the_cost_of_the_run(rig: Rig) -> None:
    client = await rig.client(**IMAGES)
    await client.post("/services/search/mcp", json={"n": 3})
    await client.get("/services/search/web/1")
    model = await client.post("/anthropic/v1/messages", json={
        "model": "anthropic-1", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]
    })  # fmt: skip
    assert model.status_code == 200
    first, second = await rig.calls()
    assert (first["units"], first["cost_usd"], second["units"], second["cost_usd"]) == (3, "0.13", 0, "0.01")
    usage = await rig.usage()
    assert (usage.service_calls, usage.services_cost_usd, usage.requests) == (2, "0.14", 1)
    assert usage.models_cost_usd is not None
    assert Decimal(usage.models_cost_usd) > 0
    assert usage.cost_usd is not None
    assert Decimal(usage.cost_usd) == Decimal(usage.models_cost_usd) + Decimal("0.14")
    assert usage.cost_usd_all_attempts == usage.cost_usd


async def test_the_run_s_dollars_bound_its_services_too(rig: Rig) -> None:
    client = await rig.client(**IMAGES, budget=RunBudget(max_usd="0.3"))
    answers = await asyncio.gather(*(client.post("/services/search/mcp", json={"n": 2}) for _ in range(20)))
    assert sorted(a.status_code for a in answers) == [200] * 3 + [400] * 17
    assert {a.json()["error"]["code"] for a in answers if a.status_code == 400} == {"budget_exhausted"}
    assert len(rig.somewhere.asked) == 3
    key = (rig.run_id, rig.grant.attempt)
    assert rig.endpoints.state(key).budget_exhausted
    assert (await rig.usage()).cost_usd == "0.27"
    assert (await rig.bench.ledger.spent(rig.run_id)).usd == Decimal("0.27")


@pytest.mark.parametrize("body", [b'{"n": 1, "n": 1000}', b'{"n": -1}', b'{"n": "1e9"}', b"n=1", b"[]", b'{"n": NaN}'])
async def test_units_that_cannot_be_read_do_not_leave(rig: Rig, body: bytes) -> None:
    client = await rig.client(**IMAGES)
    answer = await client.post("/services/search/mcp", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "units_unreadable")
    assert rig.somewhere.asked == []
    assert await rig.calls() == []


async def test_a_call_that_a_dead_gateway_left_is_settled_with_its_price(rig: Rig) -> None:
    await rig.client()
    new = NewCall(
        "svq_left", rig.grant.project_id, rig.run_id, rig.grant.attempt, rig.bench.ledger.gateway_id, "search", "GET",
        "/web/1", cost_usd=Decimal("0.005"),
    )  # fmt: skip
    await rig.bench.ledger.begin_call(new)
    await rig.bench.ledger.begin_call(new)
    assert await rig.bench.ledger.recover() == 1
    (call,) = await rig.calls()
    assert (call["error"], call["status"], call["cost_usd"]) == ("gateway_died", None, "0.005")
    assert (await rig.usage()).services_cost_usd == "0.005"


async def test_services_without_a_price_cost_what_nobody_knows(rig: Rig) -> None:
    client = await rig.client(price_per_call_usd=None)
    await client.get("/services/search/web/1")
    (call,) = await rig.calls()
    assert call["cost_usd"] is None
    usage = await rig.usage()
    assert (usage.service_calls, usage.cost_usd, usage.cost_basis) == (1, None, "unknown")
