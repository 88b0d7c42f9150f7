"""Webhooks: made with the change, sent in order, bounded whatever receivers do (faults 108, 110)."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import select

from service.domain.public_urls import parse_public_url
from service.domain.run_states import AttemptState, Outcome, Phase
from service.domain.webhooks import DeliveryState, HookEvent
from service.store import announcements, deliveries, projects, runs, webhooks
from service.store.rows import Page
from service.store.rows_feeds import DeliveryRow, WebhookRow
from service.store.secret_box import SecretBox
from service.store.tables import audit_log
from service.workers.webhook_post import Poster, PostFailed
from service.workers.webhooks import Sending, WebhookSender
from tests.integration.lifecycle.stage import Stage, until
from tests.integration.workers.receiver import Received, receiving
from workstead.webhooks import Unverified, verify

BOX = SecretBox(bytes(32))


def _soon(_tries: int) -> float:
    return 0.02


@asynccontextmanager
async def sending(stage: Stage, box: SecretBox = BOX, **changes: Any) -> AsyncGenerator[WebhookSender]:
    given: dict[str, Any] = {"allow_private": True, "scan_s": 0.05, "timeout_s": 5.0, "pause": _soon} | changes
    sender = WebhookSender(stage.db, stage.notifications, box, Sending(**given))
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def hook(
    stage: Stage, url: str, *events: str, project: str | None = None, **labels: str
) -> tuple[WebhookRow, str]:
    async with stage.db.transaction() as tx:
        owner = project or stage.project.id
        return await webhooks.create(tx, BOX, owner, url, events or ("*",), labels=labels, note="")


async def announce(stage: Stage, *numbers: int, project: str | None = None) -> None:
    for n in numbers:
        async with stage.db.transaction() as tx:
            await announcements.announce(tx, project or stage.project.id, HookEvent.OPERATION_DONE, {"n": n})


async def listed(stage: Stage, webhook: WebhookRow) -> list[DeliveryRow]:
    """Oldest first."""
    async with stage.db.reading() as tx:
        found = await deliveries.list(tx, webhook.project_id, webhook.id, Page(limit=500))
    return found.items[::-1]


async def all_in(stage: Stage, webhook: WebhookRow, *states: str) -> None:
    async def ended() -> bool:
        return [d.state for d in await listed(stage, webhook)] == [*states]

    await until(ended, 20)


async def test_a_run_is_told_of_in_order_signed_and_with_its_labels(stage: Stage) -> None:
    async with receiving() as receiver, sending(stage):
        webhook, secret = await hook(stage, receiver.url())
        await hook(stage, receiver.url("/done"), "run.done", week="48")
        await hook(stage, receiver.url("/other"), "run.done", week="49")
        run = await stage.run(await stage.task(), await stage.agent(), labels={"week": "48"})
        await all_in(stage, webhook, *["delivered"] * 3)
        await receiver.until(4)
    assert receiver.types() == ["run.running", "grading.done", "run.done"]
    assert receiver.types("/done") == ["run.done"]
    assert receiver.types("/other") == []
    first, *_, last = [verify(secret, r.headers, r.body) for r in receiver.seen if r.path == "/"]
    assert (first["data"]["id"], first["data"]["phase"]) == (run.id, "running")
    data = last["data"]
    assert (data["phase"], data["outcome"], data["labels"]) == ("done", "graded", {"week": "48"})
    assert data["verdict"] == {"state": "graded", "score": run.score, "max_score": run.max_score}
    assert data["task"]["name"] == "sum"
    assert last["timestamp"].endswith("Z")
    assert last["timestamp"] >= first["timestamp"]
    with pytest.raises(Unverified):
        verify(secret, receiver.seen[0].headers, receiver.seen[0].body + b" ")


async def test_a_change_that_is_rolled_back_tells_nobody(stage: Stage) -> None:
    webhook, _ = await hook(stage, "https://hooks.example.com/")
    run = await stage.submit(await stage.task(), await stage.agent())

    async def hold_and_fail() -> None:
        async with stage.db.transaction() as tx:
            await runs.set_phase(tx, run.id, Phase.HELD, hold={"reason": "test"})
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await hold_and_fail()
    assert await listed(stage, webhook) == []
    async with stage.db.transaction() as tx:
        await runs.set_phase(tx, run.id, Phase.HELD, hold={"reason": "test"})
        await runs.set_phase(tx, run.id, Phase.DONE, outcome=Outcome.CANCELLED)
    assert [d.type for d in await listed(stage, webhook)] == ["run.held", "run.done"]
    assert (await listed(stage, webhook))[0].payload["data"]["hold"] == {"reason": "test"}


async def test_projects_hear_of_their_own_only(stage: Stage) -> None:
    async with stage.db.transaction() as tx:
        other = await projects.create(tx, "beta")
    mine, _ = await hook(stage, "https://hooks.example.com/")
    theirs, _ = await hook(stage, "https://hooks.example.com/", project=other.id)
    await announce(stage, 1, project=other.id)
    assert [d.payload["data"] for d in await listed(stage, theirs)] == [{"n": 1}]
    assert await listed(stage, mine) == []


@pytest.mark.fault(110)
async def test_a_receiver_that_fails_is_tried_a_few_times_in_order_then_given_up(stage: Stage) -> None:
    broken = True

    def answer(got: Received) -> str:
        return "500 Oh" if broken and got.event["data"]["n"] == 1 else "200 OK"

    async with receiving(answer) as receiver, sending(stage, max_tries=3):
        webhook, _ = await hook(stage, receiver.url())
        await announce(stage, 1, 2)
        await all_in(stage, webhook, "dead", "delivered")
        assert [r.event["data"]["n"] for r in receiver.seen] == [1, 1, 1, 2]
        assert len({r.headers["webhook-id"] for r in receiver.seen[:3]}) == 1
        dead = (await listed(stage, webhook))[0]
        assert (dead.tries, dead.last_status, dead.last_error) == (3, 500, "refused")
        assert dead.ended_at is not None
        broken = False
        async with stage.db.transaction() as tx:
            await deliveries.redeliver(tx, stage.project.id, webhook.id, dead.message_id)
        await all_in(stage, webhook, "delivered", "delivered")
    again = receiver.seen[-1]
    assert (again.event["data"]["n"], again.headers["webhook-id"]) == (1, dead.message_id)


@pytest.mark.fault(110)
async def test_receivers_that_hang_hold_up_nobody_else(stage: Stage) -> None:
    async with stage.db.transaction() as tx:
        other = await projects.create(tx, "beta")
    # Long: whatever hangs hangs until the test is over.
    options: dict[str, Any] = {"timeout_s": 100.0, "concurrency": 4, "per_project": 3}
    async with receiving(lambda _: None) as hanging, receiving() as good, sending(stage, **options):
        for n in range(6):
            await hook(stage, hanging.url(f"/{n}"))
        webhook, _ = await hook(stage, good.url(), project=other.id)
        await announce(stage, 1)
        await hanging.until(3)
        await announce(stage, *range(10), project=other.id)
        await good.until(10)
        assert [r.event["data"]["n"] for r in good.seen] == [*range(10)]
        await all_in(stage, webhook, *["delivered"] * 10)
        assert (len(hanging.seen), hanging.most_open, hanging.open) == (3, 3, 3)


@pytest.mark.fault(110)
async def test_a_receiver_has_its_time_and_no_more(stage: Stage) -> None:
    async with receiving(lambda _: None) as hanging, sending(stage, timeout_s=0.3, max_tries=2):
        webhook, _ = await hook(stage, hanging.url())
        await announce(stage, 1)
        await all_in(stage, webhook, "dead")
    assert len(hanging.seen) == 2
    assert [(d.tries, d.last_status, d.last_error) for d in await listed(stage, webhook)] == [(2, None, "timeout")]


@pytest.mark.fault(110)
async def test_a_webhook_that_fails_again_and_again_is_disabled(stage: Stage) -> None:
    async with receiving(lambda _: "503 Busy") as receiver, sending(stage, max_tries=2, disable_after=3):
        webhook, _ = await hook(stage, receiver.url())
        await announce(stage, 1, 2, 3)

        async def disabled() -> bool:
            async with stage.db.reading() as tx:
                found = await webhooks.get(tx, stage.project.id, webhook.id)
            return found is not None and not found.enabled

        await until(disabled, 20)
        await announce(stage, 4)
        await asyncio.sleep(0.2)
        assert [r.event["data"]["n"] for r in receiver.seen] == [1, 1, 2]
        assert [d.state for d in await listed(stage, webhook)] == ["dead", "pending", "pending"]
        async with stage.db.reading() as tx:
            log = (await tx.execute(select(audit_log).where(audit_log.c.subject == webhook.id))).mappings().all()
        assert [(entry["actor"], entry["action"]) for entry in log] == [("webhooks", "webhook.disable")]
        assert log[0]["detail"] == {"failures": 3, "last_status": 503, "last_error": "refused"}
        receiver.answer = lambda _: "200 OK"
        async with stage.db.transaction() as tx:
            changed = await webhooks.change(tx, stage.project.id, webhook.id, enabled=True)
        assert changed is not None
        assert (changed.failures, changed.disabled_at) == (0, None)
        await all_in(stage, webhook, "dead", "delivered", "delivered")


async def test_a_receiver_that_is_gone_is_not_asked_again(stage: Stage) -> None:
    async with receiving(lambda _: "410 Gone") as receiver, sending(stage):
        webhook, _ = await hook(stage, receiver.url())
        await announce(stage, 1, 2)
        await all_in(stage, webhook, "dead", "pending")
        await asyncio.sleep(0.2)
    assert len(receiver.seen) == 1


@pytest.mark.fault(110)
async def test_two_senders_send_each_once_and_in_order(stage: Stage) -> None:
    async with receiving() as receiver:
        hooks = [(await hook(stage, receiver.url(f"/{n}")))[0] for n in range(4)]
        async with sending(stage), sending(stage), sending(stage):
            await announce(stage, *range(15))
            for one in hooks:
                await all_in(stage, one, *["delivered"] * 15)
    for n in range(4):
        assert [r.event["data"]["n"] for r in receiver.seen if r.path == f"/{n}"] == [*range(15)]


async def test_what_a_dead_sender_left_is_sent_again_and_its_late_word_counts_for_nothing(stage: Stage) -> None:
    webhook, _ = await hook(stage, "https://hooks.example.com/")
    await announce(stage, 1, 2)
    async with stage.db.transaction() as tx:
        heads = await deliveries.due_heads(tx)
        (first,) = await deliveries.lease(tx, [id for id, _ in heads])
    async with stage.db.transaction() as tx:
        assert await deliveries.due_heads(tx) == []
        assert await deliveries.lease(tx, [first.id]) == []
        await tx.execute(announcements.text("UPDATE webhook_deliveries SET next_at = next_at - interval '61 s'"))
    async with stage.db.transaction() as tx:
        (second,) = await deliveries.lease(tx, [id for id, _ in await deliveries.due_heads(tx)])
        assert (second.id, second.message_id, second.tries) == (first.id, first.message_id, 2)
        assert not await deliveries.succeeded(tx, first, 200)
        assert not await deliveries.failed(tx, first, 500, "refused", None, 1)
        assert await deliveries.succeeded(tx, second, 200)
        assert await deliveries.purge(tx) == 0
    assert [d.state for d in await listed(stage, webhook)] == [DeliveryState.DELIVERED, DeliveryState.PENDING]


@pytest.mark.fault(110)
async def test_a_backlog_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, _ = await hook(stage, "https://hooks.example.com/")
    fill = announcements.text("""
        INSERT INTO webhook_deliveries (webhook_id, project_id, message_id, type, payload, state, next_at)
        SELECT :webhook, :project, 'msg_' || n, 'x', '{}'::jsonb, 'pending', clock_timestamp()
        FROM generate_series(1, :count) AS n""")
    async with stage.db.transaction() as tx:
        keys = {"webhook": webhook.id, "project": stage.project.id}
        await tx.execute(fill, keys | {"count": announcements.BACKLOG - 1})
    await announce(stage, 1, 2)
    last, before = (await listed_newest(stage, webhook))[:2]
    assert (before.state, last.state, last.last_error) == ("pending", "dead", "backlog_full")


async def listed_newest(stage: Stage, webhook: WebhookRow) -> list[DeliveryRow]:
    async with stage.db.reading() as tx:
        return (await deliveries.list(tx, webhook.project_id, webhook.id, Page(limit=5))).items


async def test_a_secret_that_cannot_be_read_sends_nothing(stage: Stage) -> None:
    async with receiving() as receiver, sending(stage, SecretBox(bytes([1]) * 32), max_tries=1):
        webhook, _ = await hook(stage, receiver.url())
        await announce(stage, 1)
        await all_in(stage, webhook, "dead")
    assert receiver.seen == []
    assert (await listed(stage, webhook))[0].last_error == "secret_unreadable"


@pytest.mark.fault(108)
async def test_a_redirect_is_a_failure_and_is_not_followed(stage: Stage) -> None:
    async with receiving() as private:
        target = private.url("/secret")
        async with receiving(lambda _: f"307 Away\r\nLocation: {target}") as receiver, sending(stage, max_tries=1):
            webhook, _ = await hook(stage, receiver.url())
            await announce(stage, 1)
            await all_in(stage, webhook, "dead")
            assert (await listed(stage, webhook))[0].last_error == "redirected"
    assert private.seen == []


@pytest.mark.fault(108)
async def test_what_became_private_after_it_was_accepted_is_not_called(stage: Stage) -> None:
    async with receiving() as receiver, sending(stage, allow_private=False, max_tries=1):
        by_http, _ = await hook(stage, receiver.url())
        by_https, _ = await hook(stage, f"https://127.0.0.1:{receiver.port}/")
        await announce(stage, 1)
        for webhook in (by_http, by_https):
            await all_in(stage, webhook, "dead")
            assert (await listed(stage, webhook))[0].last_error == "bad_url"
    assert receiver.seen == []


def resolver(*addresses: str) -> Any:
    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        assert host == "hooks.example.com."
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return getaddrinfo


@pytest.mark.fault(108)
@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("::ffff:127.0.0.1",), ("169.254.169.254",)]
)
async def test_a_name_with_any_private_address_is_not_called(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", resolver(*addresses))
        poster = Poster()
        with pytest.raises(PostFailed) as caught:
            await poster.post(parse_public_url(f"https://hooks.example.com:{receiver.port}/"), b"{}", {})
        await poster.close()
    assert caught.value.reason == "address_not_public"
    assert receiver.seen == []
    assert receiver.most_open == 0


def _never(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    raise AssertionError("no certificate of ours is trusted")


@pytest.mark.fault(108)
async def test_it_connects_to_the_address_that_was_checked_and_asks_for_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection is observed up to the name in its TLS hello; no certificate of ours is trusted."""
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _object, name, _context: names.append(name)
    server = await asyncio.start_server(_never, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9/")
    poster = Poster(allow_private=True)
    with pytest.raises(PostFailed) as caught:
        await poster.post(parse_public_url(f"https://hooks.example.com:{port}/", allow_private=True), b"{}", {})
    await poster.close()
    server.close()
    assert caught.value.reason == "tls_failed"
    assert names == ["hooks.example.com"]
    assert asked.count("hooks.example.com") == 1


async def test_a_run_that_starts_is_told_of_once(stage: Stage) -> None:
    webhook, _ = await hook(stage, "https://hooks.example.com/", "run.running")
    ctx = stage.context()
    await stage.submit(await stage.task(), await stage.agent())
    await stage.steps(ctx, await stage.claim(ctx), AttemptState.RUNNING)
    assert [d.type for d in await listed(stage, webhook)] == ["run.running"]
