"""The model catalogue, services, their credentials, breakers."""

from typing import Any

import pytest
from sqlalchemy import text

from service.store import credentials, projects, tokens
from service.store.sealed_box import OpeningKey
from tests.api.helpers import Tenant

KEY = OpeningKey(bytes(range(32)))
SECRET = "sk-ant-api03-NeverShown_0123456789"
SPEC: dict[str, Any] = {
    "name": "acme/one",
    "provider": "acme",
    "upstream_id": "one-2026",
    "dialect": "openai",
    "base_url": "https://api.acme.example.com/v1",
    "vendor": "Acme",
    "efforts": ["low", "high"],
}
SERVICE: dict[str, Any] = {
    "name": "search",
    "base_url": "https://search.example.com/v2",
    "credential": {"place": "header", "name": "x-subscription"},
    "allow": [{"methods": ["GET"], "path": "/web/*"}],
}


async def with_gateway(one: Tenant) -> None:
    async with one.state.db.transaction() as tx:
        await credentials.register_key(tx, KEY.id, KEY.public)


def kind(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


async def test_an_entry_is_made_once_listed_replaced_and_deleted(tenant: Tenant) -> None:
    made = await tenant.post("/v1/models", SPEC)
    assert made["spec"]["upstream_id"] == "one-2026"
    assert (made["has_credential"], made["private"], made["check"]) == (False, False, None)
    again = await tenant.client.post("/v1/models", json=SPEC)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    other = await tenant.client.post("/v1/models", json=SPEC | {"context_window": 10})
    assert kind(other) == (409, "model_exists")
    path = f"/v1/models/{made['id']}"
    listed = await tenant.client.get("/v1/models?provider=acme&total=true")
    assert (listed.json()["total"], listed.json()["data"][0]["id"]) == (1, made["id"])
    assert (await tenant.get("/v1/models?dialect=gemini"))["data"] == []
    replaced = await tenant.client.put(path, json=SPEC | {"context_window": 10})
    assert (replaced.status_code, replaced.json()["revision"]) == (200, made["revision"] + 1)
    assert (await tenant.client.get(path, headers={"If-None-Match": replaced.headers["etag"]})).status_code == 304
    tag = {"If-None-Match": listed.headers["etag"]}
    assert (await tenant.client.get("/v1/models?provider=acme&total=true", headers=tag)).status_code == 200
    assert kind(await tenant.client.put(path, json=SPEC | {"name": "acme/two"})) == (422, "name_changed")
    assert (await tenant.client.delete(path)).status_code == 204
    assert (await tenant.client.get(path)).status_code == 404


async def test_a_model_that_is_named_stays(tenant: Tenant) -> None:
    model = await tenant.post("/v1/models", SPEC)
    await tenant.agent(model=SPEC["name"])
    assert kind(await tenant.client.delete(f"/v1/models/{model['id']}")) == (409, "model_in_use")


@pytest.mark.fault(41)
async def test_a_secret_goes_in_and_never_comes_out(tenant: Tenant) -> None:
    await with_gateway(tenant)
    model = await tenant.post("/v1/models", SPEC)
    path = f"/v1/models/{model['id']}/credential"
    assert kind(await tenant.client.get(path)) == (404, "not_found")
    put = await tenant.client.put(path, json={"secret": SECRET, "purpose": "judge"})
    assert put.status_code == 200
    assert (put.json()["purpose"], put.json()["state"]) == ("judge", "ready")
    seen = [put.text, (await tenant.client.get(path)).text, (await tenant.client.get("/v1/models")).text]
    seen.append((await tenant.client.get(f"/v1/models/{model['id']}")).text)
    assert (await tenant.get(f"/v1/models/{model['id']}"))["has_credential"] is True
    async with tenant.state.db.reading() as tx:
        mine = {"p": tenant.project_id}
        for table in ("credentials", "models", "audit_log", "operations"):
            rows = await tx.execute(text(f"SELECT * FROM {table} WHERE project_id = :p"), mine)
            seen += [repr(tuple(row)) for row in rows]
        audited = text("SELECT action, detail FROM audit_log WHERE project_id = :p AND action LIKE '%credential%'")
        (action,) = [*(await tx.execute(audited, mine))]
        row = (await tx.execute(text("SELECT id, sealed FROM credentials WHERE project_id = :p"), mine)).one()
    assert action[0] == "model.credential.put"
    assert not [s for s in seen if SECRET in s or SECRET.encode().hex() in s]
    assert KEY.open(bytes(row.sealed), row.id).decode() == SECRET
    assert (await tenant.client.delete(path)).status_code == 204
    assert kind(await tenant.client.delete(path)) == (409, "no_credential")


async def test_a_bad_secret_is_refused_without_being_repeated(tenant: Tenant) -> None:
    await with_gateway(tenant)
    model = await tenant.post("/v1/models", SPEC)
    path = f"/v1/models/{model['id']}/credential"
    bodies: list[Any] = [{"secret": f"{SECRET}\r\nx: y"}, {"secret": SECRET, "purpose": "agent"}, {"secret": [SECRET]}]
    bodies += [{"secret": SECRET * 300}, {"secret": SECRET, "more": SECRET}, {"secret": SECRET, "purpose": "service"}]
    for body in bodies:
        answer = await tenant.client.put(path, json=body)
        assert answer.status_code == 422, body
        assert SECRET not in answer.text


async def test_a_new_gateway_key_makes_old_secrets_unreadable(tenant: Tenant) -> None:
    await with_gateway(tenant)
    model = await tenant.post("/v1/models", SPEC)
    path = f"/v1/models/{model['id']}/credential"
    first = (await tenant.client.put(path, json={"secret": SECRET})).json()
    other = OpeningKey(bytes(32))
    async with tenant.state.db.transaction() as tx:
        await credentials.register_key(tx, other.id, other.public)
    assert (await tenant.get(path))["state"] == "unreadable"
    again = (await tenant.client.put(path, json={"secret": SECRET})).json()
    assert (again["state"], again["hint"]) == ("ready", first["hint"])
    assert again["replaced_at"] is not None
    await with_gateway(tenant)


async def test_another_address_forgets_the_secret(tenant: Tenant) -> None:
    await with_gateway(tenant)
    model = await tenant.post("/v1/models", SPEC)
    path = f"/v1/models/{model['id']}"
    await tenant.client.put(f"{path}/credential", json={"secret": SECRET})
    same = await tenant.client.put(path, json=SPEC | {"context_window": 5})
    assert same.json()["has_credential"] is True
    moved = await tenant.client.put(path, json=SPEC | {"base_url": "https://elsewhere.example.com"})
    assert moved.json()["has_credential"] is False
    async with tenant.state.db.reading() as tx:
        left = text("SELECT count(*) FROM credentials WHERE project_id = :p")
        assert (await tx.execute(left, {"p": tenant.project_id})).scalar_one() == 0


@pytest.mark.parametrize(
    "base_url",
    ["http://api.acme.example.com/v1", "https://127.0.0.1/v1", "https://10.0.0.7", "https://[::1]/v1",
     "https://localhost/v1", "https://llm.internal/v1", "https://169.254.169.254", "https://0x7f000001/"],
)  # fmt: skip
async def test_private_addresses_are_an_operators(tenant: Tenant, base_url: str) -> None:
    refused = await tenant.client.post("/v1/models", json=SPEC | {"base_url": base_url})
    assert kind(refused) == (422, "bad_url")
    assert kind(await tenant.client.post("/v1/services", json=SERVICE | {"base_url": base_url})) == (422, "bad_url")


async def test_an_operator_may_register_a_private_one(tenant: Tenant) -> None:
    async with tenant.state.db.transaction() as tx:
        default = await projects.get_default(tx)
        _, operator = await tokens.mint(tx, default.id, ["admin"])
        _, helper = await tokens.mint(tx, default.id, ["models:admin"])
    spec = SPEC | {"name": f"local/{tenant.project_id}", "base_url": "http://127.0.0.1:8000/v1"}
    refused = await tenant.client.post("/v1/models", json=spec, headers={"Authorization": f"Bearer {helper}"})
    assert kind(refused) == (422, "bad_url")
    made = await tenant.client.post("/v1/models", json=spec, headers={"Authorization": f"Bearer {operator}"})
    assert (made.status_code, made.json()["private"]) == (201, True)


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "Host", "a b", "Content-Length"])
async def test_fixed_headers_hold_no_key_and_break_nothing(tenant: Tenant, name: str) -> None:
    answer = await tenant.client.post("/v1/models", json=SPEC | {"headers": {name: "x"}})
    assert kind(answer) == (422, "bad_headers")


async def test_scopes(tenant: Tenant) -> None:
    model = await tenant.post("/v1/models", SPEC)
    reader = await tenant.token("agents:read")
    assert (await tenant.client.get("/v1/models", headers=reader)).status_code == 200
    path = f"/v1/models/{model['id']}"
    for method, where in (("POST", "/v1/models"), ("PUT", path), ("PUT", f"/v1/breakers/{model['id']}")):
        body = SPEC if "breakers" not in where else {"state": "open"}
        assert (await tenant.client.request(method, where, json=body, headers=reader)).status_code == 403
    writer = await tenant.token("agents:read", "agents:write", "runs:write")
    assert (await tenant.client.get(f"{path}/credential", headers=writer)).status_code == 403
    admin = await tenant.token("models:admin")
    assert (await tenant.client.put(path, json=SPEC, headers=admin)).status_code == 200


async def test_the_shipped_catalogue_can_be_copied(tenant: Tenant) -> None:
    shipped = (await tenant.get("/v1/model-catalogue"))["data"]
    vendors = {m["vendor"] for m in shipped}
    assert {"Anthropic", "OpenAI", "Google", "xAI", "DeepSeek", "Alibaba"} <= vendors
    for spec in shipped:
        await tenant.post("/v1/models", spec)
    assert (await tenant.get("/v1/models?total=true"))["total"] == len(shipped)


async def test_services(tenant: Tenant) -> None:
    await with_gateway(tenant)
    made = await tenant.post("/v1/services", SERVICE)
    path = f"/v1/services/{made['id']}"
    assert (await tenant.client.post("/v1/services", json=SERVICE)).status_code == 200
    assert kind(await tenant.client.post("/v1/services", json=SERVICE | {"timeout_s": 5})) == (409, "service_exists")
    put = await tenant.client.put(f"{path}/credential", json={"secret": SECRET})
    assert (put.status_code, put.json()["purpose"]) == (200, "service")
    assert (await tenant.get(f"{path}/credential"))["state"] == "ready"
    wrong = await tenant.client.put(f"{path}/credential", json={"secret": SECRET, "purpose": "model"})
    assert kind(wrong) == (422, "bad_purpose")
    replaced = await tenant.client.put(path, json=SERVICE | {"timeout_s": 5})
    assert (replaced.json()["spec"]["timeout_s"], replaced.json()["has_credential"]) == (5, True)
    nameless = SERVICE | {"name": "b", "credential": {"place": "query"}}
    assert kind(await tenant.client.post("/v1/services", json=nameless)) == (422, "bad_credential_place")
    assert [s["name"] for s in (await tenant.get("/v1/services"))["data"]] == ["search"]
    assert (await tenant.client.delete(path)).status_code == 204
    assert (await tenant.client.get(path)).status_code == 404


async def test_breakers_by_hand(tenant: Tenant) -> None:
    model = await tenant.post("/v1/models", SPEC)
    path = f"/v1/breakers/{model['id']}"
    assert (await tenant.get(path))["state"] == "closed"
    assert (await tenant.get("/v1/breakers"))["data"] == []
    opened = await tenant.client.put(path, json={"state": "open", "reason": "billing"})
    assert (opened.json()["state"], opened.json()["manual"], opened.json()["reason"]) == ("open", True, "billing")
    (listed,) = (await tenant.get("/v1/breakers"))["data"]
    assert (listed["model"], listed["manual"], listed["next_probe_at"]) == ("acme/one", True, None)
    closed = await tenant.client.put(path, json={"state": "closed"})
    assert (closed.json()["state"], closed.json()["manual"]) == ("closed", False)
    assert (await tenant.client.put(path, json={"state": "half_open"})).status_code == 422


async def test_a_check_is_an_operation(tenant: Tenant) -> None:
    model = await tenant.post("/v1/models", SPEC)
    answer = await tenant.client.post(f"/v1/models/{model['id']}/check")
    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (202, "model_check", "queued")
    assert (await tenant.get(answer.headers["location"]))["unit"] == "checks"


async def test_an_agents_model_must_be_in_the_catalogue(tenant: Tenant) -> None:
    await tenant.agent()
    body = {"scaffold": "solver@1", "model": "acme/nothing"}
    assert kind(await tenant.client.post("/v1/agents", json=body)) == (422, "model_not_found")
    side = {"scaffold": "solver@1", "settings": {"side_models": ["acme/nothing"]}}
    assert kind(await tenant.client.post("/v1/agents", json=side)) == (422, "model_not_found")
    await tenant.post("/v1/models", SPEC)
    assert (await tenant.client.post("/v1/agents", json=body | {"model": "acme/one"})).status_code == 201


async def test_an_effort_that_no_one_knows_is_refused_at_once(tenant: Tenant) -> None:
    await tenant.post("/v1/models", SPEC | {"dialect": "anthropic", "base_url": "https://api.acme.example.com"})
    body = {"scaffold": "claude-code@latest", "model": SPEC["name"], "settings": {"effort": "colossal"}}
    refused = await tenant.client.post("/v1/agents", json=body)
    assert kind(refused) == (422, "unsupported_effort"), refused.text
    good = await tenant.client.post("/v1/agents", json=body | {"settings": {"effort": "max"}})
    assert good.status_code == 201, good.text
