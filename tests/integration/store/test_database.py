"""The pool under restarts, notifications under restarts, session locks."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import text

from service.domain.errors import Conflict, Invalid, Unavailable
from service.domain.events import EventType, NewEvent
from service.store import events, migrate, runs
from service.store.database import Database, Tx, retrying
from service.store.notifications import RUN_EVENTS, RUNS, Notifications
from service.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.postgres import open_directory, plain_url
from tests.integration.store.seeds import add_run, seed

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def notifications(database_url: str) -> AsyncIterator[Notifications]:
    async with Notifications(database_url) as found:
        async with asyncio.timeout(10):
            await found.connected.wait()
        yield found


def kill_backends(url: str) -> None:
    """What a restart of the server is to its clients."""
    with psycopg.connect(plain_url(url), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_reading_cannot_write(db: Database) -> None:
    with pytest.raises(Exception, match="read-only"):
        async with db.reading() as tx:
            await tx.execute(text("CREATE TABLE x (y int)"))
    async with db.transaction() as tx:
        await tx.execute(text("CREATE TABLE x (y int)"))


async def test_dead_pooled_connections_are_discarded(db: Database, database_url: str) -> None:
    async def one(_: int) -> int:
        async with db.reading() as tx:
            await asyncio.sleep(0.02)
            return (await tx.execute(text("SELECT 1"))).scalar_one()

    assert await asyncio.gather(*map(one, range(10))) == [1] * 10
    await asyncio.to_thread(kill_backends, database_url)
    await asyncio.sleep(0.1)
    assert await asyncio.gather(*map(one, range(10))) == [1] * 10


async def test_a_broken_transaction_is_unavailable_and_can_be_retried(db: Database, database_url: str) -> None:
    tries = 0

    async def work(tx: Tx) -> int:
        nonlocal tries
        tries += 1
        await tx.execute(text("SELECT 1"))
        if tries == 1:
            await asyncio.to_thread(kill_backends, database_url)
        return (await tx.execute(text("SELECT 2"))).scalar_one()

    with pytest.raises(Unavailable) as caught:
        async with db.transaction() as tx:
            await work(tx)
    assert caught.value.type == "database_unavailable"
    tries = 0
    assert await retrying(db, work, 10) == 2
    assert tries == 2


async def test_no_server_is_unavailable_within_the_time_given() -> None:
    nowhere = Database("postgresql+psycopg://u:p@/x?host=%2Fnonexistent")

    async def work(tx: Tx) -> None:
        await tx.execute(text("SELECT 1"))

    async with asyncio.timeout(5):
        with pytest.raises(Unavailable):
            await retrying(nowhere, work, 0.5)
    await nowhere.close()


@pytest.mark.parametrize("odd", ["a\0", "\ud800"])
async def test_odd_text_is_the_callers_fault(db: Database, odd: str) -> None:
    with pytest.raises(Invalid):
        async with db.reading() as tx:
            await runs.get(tx, "p", odd)


async def test_errors_of_ours_pass_through(db: Database) -> None:
    with pytest.raises(Conflict):
        async with db.transaction():
            raise Conflict("mine")


async def test_subscriptions_wake_by_key_and_coalesce(db: Database, notifications: Notifications) -> None:
    async with (
        notifications.subscribe(RUNS, "run_1") as one,
        notifications.subscribe(RUNS, "run_2") as two,
        notifications.subscribe(RUNS) as every,
    ):
        for _ in range(50):
            async with db.transaction() as tx:
                await tx.execute(text("SELECT pg_notify('runs', 'run_1 queued')"))
        assert await one.wait(2)
        assert await every.wait(2)
        assert not await two.wait(0.05)
        await one.wait(0.2)
        assert not await one.wait(0.1)
    assert not notifications._subscribers  # pyright: ignore[reportPrivateUsage]


async def test_a_lost_listener_wakes_everybody_and_comes_back(
    db: Database, notifications: Notifications, database_url: str
) -> None:
    async with notifications.subscribe(RUNS, "run_1") as sub:
        await asyncio.to_thread(kill_backends, database_url)
        assert await sub.wait(5)
        async with asyncio.timeout(10):
            await notifications.connected.wait()
        while await sub.wait(0.3):
            pass
        async with db.transaction() as tx:
            await tx.execute(text("SELECT pg_notify('runs', 'run_1')"))
        assert await sub.wait(5)


@pytest.mark.fault(116)
async def test_a_restart_under_twenty_readers_loses_nothing() -> None:
    # A server of its own: one that keeps what it committed, and whose restart hits no other test.
    with open_directory() as directory, EmbeddedPostgres(directory) as server:
        url = server.url_for("postgres")
        migrate.upgrade(url)
        db = Database(url, pool_size=24)
        async with Notifications(url) as notifications:
            await _read_through_restarts(db, notifications, server)
        await db.close()


async def _read_through_restarts(db: Database, notifications: Notifications, server: EmbeddedPostgres) -> None:
    total = 100
    async with db.transaction() as tx:
        run = await add_run(tx, await seed(tx, "alpha"))

    async def reader() -> list[int]:
        seen: list[int] = []

        async def more(tx: Tx) -> list[int]:
            return [e.seq for e in await events.read(tx, run.id, seen[-1] if seen else 0, 50)]

        async with notifications.subscribe(RUN_EVENTS, run.id) as sub:
            while len(seen) < total + 1:
                found = await retrying(db, more, 30)
                seen += found
                if not found:
                    await sub.wait(2)
        return seen

    async def writer() -> None:
        for i in range(total):
            note = NewEvent(EventType.NOTE, {"i": i}, "w", i, T0)
            await retrying(db, lambda tx, note=note: events.append(tx, run.id, 1, None, [note]), 30)
            if i in (30, 70):
                restart(server)

    readers = [asyncio.create_task(reader()) for _ in range(20)]
    async with asyncio.timeout(60):
        await writer()
        results = await asyncio.gather(*readers)
    assert results == [list(range(1, total + 2))] * 20


def restart(server: EmbeddedPostgres) -> None:
    """Must run in the main thread, whose end would end the server; so it blocks the loop for a moment."""
    server.stop()
    server.start()


async def test_a_session_lock_is_exclusive_and_tells_its_loss(db: Database, database_url: str) -> None:
    async with db.session_lock("host:a") as lost:
        with pytest.raises(Conflict):
            async with db.session_lock("host:a", wait_s=0.1):
                pass
        async with db.session_lock("host:b", wait_s=0.1):
            pass
        assert not lost.is_set()
        await asyncio.to_thread(kill_backends, database_url)
        async with asyncio.timeout(3):
            await lost.wait()
    async with db.session_lock("host:a", wait_s=1.0):
        pass


@pytest.mark.parametrize("kind", ["reading", "transaction", "statement"])
async def test_a_task_that_is_cancelled_at_any_moment_gives_its_connection_back(database_url: str, kind: str) -> None:
    """With one connection in all, a lost one would leave nothing for whoever comes next."""
    db = Database(database_url, pool_size=1)

    async def use() -> None:
        async with getattr(db, kind)() as tx:
            await tx.execute(text("SELECT 1"))

    for moments in range(60):
        task = asyncio.create_task(use())
        for _ in range(moments):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(5):
        await use()
    await db.close()
