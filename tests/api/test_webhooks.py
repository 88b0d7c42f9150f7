"""Webhooks as their owners see them; the sending itself is in tests/integration/workers/test_webhooks.py."""

from typing import Any

import pytest
from sqlalchemy import select

from service.domain.webhooks import HookEvent
from service.store import announcements
from service.store.tables import audit_log
from service.store.tables_feeds import webhooks
from tests.api.helpers import Tenant

URL = "https://hooks.example.com/in"


async def make(one: Tenant, **more: Any) -> Any:
    return await one.post("/v1/webhooks", {"url": URL, "events": ["run.done"]} | more)


async def patch(one: Tenant, path: str, body: Any, status: int = 200) -> Any:
    answer = await one.client.patch(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_secret_is_shown_once_and_stored_sealed(tenant: Tenant) -> None:
    made = await make(tenant, labels={"week": "48"}, note="ours", events=["run.done", "run.done", "*"])
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert (made["events"], made["labels"], made["note"], made["enabled"], made["failures"]) == (
        ["*", "run.done"], {"week": "48"}, "ours", True, 0,
    )  # fmt: skip
    path = f"/v1/webhooks/{made['id']}"
    assert await tenant.get(path) == made
    assert (await tenant.get("/v1/webhooks"))["data"] == [made]
    async with tenant.state.db.reading() as tx:
        row = (await tx.execute(select(webhooks).where(webhooks.c.id == made["id"]))).mappings().one()
        said = (await tx.execute(select(audit_log).where(audit_log.c.subject == made["id"]))).mappings().all()
    assert secret.encode() not in bytes(row["secret"])
    assert secret.removeprefix("whsec_")[:20] not in str(dict(row))
    assert [entry["action"] for entry in said] == ["webhook.create"]
    assert secret not in str([dict(entry) for entry in said])
    rotated = await tenant.post(f"{path}/rotate", None, 200)
    assert rotated.pop("secret") not in (secret, "")
    assert rotated == made


async def test_changes_and_deletion(tenant: Tenant) -> None:
    path = f"/v1/webhooks/{(await make(tenant))['id']}"
    changed = await patch(tenant, path, {"enabled": False, "events": ["*"]})
    assert (changed["enabled"], changed["events"], changed["url"]) == (False, ["*"], URL)
    assert changed["disabled_at"] is not None
    refused = await tenant.client.post(f"{path}/test")
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:workstead:problem:webhook_disabled")
    changed = await patch(tenant, path, {"enabled": True, "note": "back"})
    assert (changed["enabled"], changed["disabled_at"], changed["note"], changed["events"]) == (
        True,
        None,
        "back",
        ["*"],
    )
    assert await patch(tenant, path, {}) == changed
    assert (await tenant.client.delete(path)).status_code == 204
    assert (await tenant.client.delete(path)).status_code == 404
    assert (await tenant.client.get(path)).status_code == 404


@pytest.mark.fault(108)
async def test_private_urls_are_refused_where_they_are_given(tenant: Tenant) -> None:
    path = f"/v1/webhooks/{(await make(tenant))['id']}"
    for url in (
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://2130706433/",
        "x",
    ):
        answer = await tenant.client.post("/v1/webhooks", json={"url": url, "events": ["*"]})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:workstead:problem:bad_url"), url
        assert (await patch(tenant, path, {"url": url}, 422))["type"] == "urn:workstead:problem:bad_url"
    assert (await tenant.get(path))["url"] == URL


async def test_what_is_no_webhook_is_refused(tenant: Tenant) -> None:
    wrong: list[dict[str, Any]] = [
        {"events": []}, {"events": ["run.gone"]}, {"events": ["webhook.test"]}, {"note": "x" * 201}, {"secret": "mine"},
    ]  # fmt: skip
    for bad in wrong:
        answer = await tenant.client.post("/v1/webhooks", json={"url": URL, "events": ["*"]} | bad)
        assert answer.status_code == 422, bad
    lesser = await tenant.token("runs:read", "runs:write")
    assert (await tenant.client.get("/v1/webhooks", headers=lesser)).status_code == 403
    for _ in range(50):
        await make(tenant)
    full = await tenant.client.post("/v1/webhooks", json={"url": URL, "events": ["*"]})
    assert (full.status_code, full.json()["type"]) == (409, "urn:workstead:problem:too_many_webhooks")


async def test_deliveries_are_listed_and_sent_again(tenant: Tenant) -> None:
    webhook = await make(tenant, events=["operation.done"])
    path = f"/v1/webhooks/{webhook['id']}"
    test = await tenant.post(f"{path}/test", None, 202)
    assert (test["type"], test["state"], test["tries"], test["payload"]["type"]) == (
        "webhook.test", "pending", 0, "webhook.test",
    )  # fmt: skip
    for n in range(3):
        async with tenant.state.db.transaction() as tx:
            await announcements.announce(tx, tenant.project_id, HookEvent.OPERATION_DONE, {"n": n})
            await announcements.announce(tx, tenant.project_id, HookEvent.GRADING_DONE, {"n": n})
    first = await tenant.get(f"{path}/deliveries?limit=2")
    rest = await tenant.get(first["next"])
    assert [d["payload"]["data"].get("n") for d in first["data"] + rest["data"]] == [2, 1, 0, None]
    assert rest["next"] is None
    assert len((await tenant.get(f"{path}/deliveries?state=pending"))["data"]) == 4
    assert (await tenant.get(f"{path}/deliveries?state=dead"))["data"] == []
    assert (await tenant.client.get(f"{path}/deliveries?state=lost")).status_code == 422
    again = await tenant.post(f"{path}/deliveries/{test['id']}/redeliver", None, 202)
    assert (again["id"], again["state"]) == (test["id"], "pending")
    assert (await tenant.client.post(f"{path}/deliveries/msg_none/redeliver")).status_code == 404
    other = await make(tenant)
    foreign = f"/v1/webhooks/{other['id']}/deliveries/{test['id']}/redeliver"
    assert (await tenant.client.post(foreign)).status_code == 404
