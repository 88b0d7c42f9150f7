"""Tokens and sessions: hashes only, one path for everything that is wrong."""

import statistics
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import text

from service.domain.run_states import AttemptState
from service.store import attempts, tokens
from service.store.database import Database
from service.store.listing import ListFilter
from service.store.rows import Page, TokenRow
from tests.fixtures.postgres import plain_url
from tests.integration.store.seeds import Seeds, add_host, add_run, seed


async def auth(db: Database, secret: str) -> TokenRow | None:
    async with db.reading() as tx:
        return await tokens.authenticate(tx, secret)


async def test_a_token_is_what_its_secret_says(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        row, secret = await tokens.mint(tx, seeds.project.id, ["runs:write", "runs:read"], "mine")
    assert secret.startswith(row.prefix + "_")
    assert len(secret) == 56
    assert await auth(db, secret) == row
    assert row.scopes == ("runs:read", "runs:write")


@pytest.mark.fault(61)
async def test_anything_else_is_nobody(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        _, secret = await tokens.mint(tx, seeds.project.id, [], "")
    wrong = [
        "", " ", secret[:-1], secret + "x", secret[:13] + "A" * 43, secret.upper(), "ws" + secret[3:], secret + "\n",
        "\u00fcn\u00efcode" * 7, "\ud800", "\0", "x" * 1_000_000, "wst_" + "\u0661" * 8 + "_" + "A" * 43, "%", "'--",
    ]  # fmt: skip
    for candidate in wrong:
        assert await auth(db, candidate) is None
    assert await auth(db, secret) is not None


@pytest.mark.fault(61)
async def test_the_same_steps_whatever_is_wrong(db: Database, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query and one comparison each; and no candidate is told apart by the median of its times."""
    compared: list[int] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(len(a))
        return a == b

    monkeypatch.setattr("service.store.tokens.hmac.compare_digest", compare)
    async with db.transaction() as tx:
        _, secret = await tokens.mint(tx, seeds.project.id, [], "")
    prefix_right, unknown, shapeless = secret[:13] + "A" * 43, "wst_AAAAAAAA_" + "A" * 43, "x" * 1_000_000
    candidates = (prefix_right, unknown, shapeless)
    times: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    async with db.reading() as tx:
        for _ in range(60):
            for candidate in candidates:  # in turns: what slows the machine down slows all of them down
                begin = time.perf_counter()
                assert await tokens.authenticate(tx, candidate) is None
                times[candidate].append(time.perf_counter() - begin)
    medians = [statistics.median(taken) for taken in times.values()]
    assert compared == [32] * 180
    assert max(medians) < 3 * min(medians)


async def test_expiry_and_revocation(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        _, old = await tokens.mint(tx, seeds.project.id, [], "", datetime.now(UTC) - timedelta(seconds=1))
        row, secret = await tokens.mint(tx, seeds.project.id, [], "", datetime.now(UTC) + timedelta(hours=1))
        session = await tokens.open_session(tx, row.id)
    assert await auth(db, old) is None
    async with db.transaction() as tx:
        assert not await tokens.revoke(tx, other.project.id, row.id)
        assert await tokens.session_token(tx, session) == row
    assert await auth(db, secret) == row
    async with db.transaction() as tx:
        assert await tokens.revoke(tx, seeds.project.id, row.id)
        assert await tokens.session_token(tx, session) is None
        listed = await tokens.LISTING.page(tx, seeds.project.id, ListFilter(), "-created_at", Page())
        assert [t.revoked_at is None for t in listed.items] == [False, True]
    assert await auth(db, secret) is None


async def test_sessions_end(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        row, _ = await tokens.mint(tx, seeds.project.id, [], "")
        one, two = await tokens.open_session(tx, row.id), await tokens.open_session(tx, row.id)
        await tokens.close_session(tx, one)
        assert await tokens.session_token(tx, one) is None
        assert await tokens.session_token(tx, two) is not None
        await tx.execute(text("UPDATE sessions SET expires_at = clock_timestamp()"))
        assert await tokens.session_token(tx, two) is None


async def test_last_use_is_noted_once_a_minute(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        row, secret = await tokens.mint(tx, seeds.project.id, [], "")
    uses: list[datetime | None] = []
    for _ in range(2):
        async with db.transaction() as tx:
            await tokens.touch(tx, row.id)
        found = await auth(db, secret)
        assert found is not None
        uses.append(found.last_used_at)
    assert uses[0] is not None
    assert uses[0] == uses[1]


@pytest.mark.fault(39)
async def test_a_run_token_lives_as_long_as_its_attempt(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    async with db.transaction() as tx:
        (attempt,) = await attempts.claim(tx, host, 1)
        _, secret = await tokens.mint(tx, seeds.project.id, [], kind="run", run_id=run.id, attempt=1)
        _, early = await tokens.mint(tx, seeds.project.id, [], kind="run", run_id=run.id, attempt=2)
    assert await auth(db, secret) is not None
    assert await auth(db, early) is None
    async with db.transaction() as tx:
        attempt = await attempts.advance(tx, attempt, AttemptState.RUNNING)
    assert await auth(db, secret) is not None
    async with db.transaction() as tx:
        await attempts.advance(tx, attempt, AttemptState.ENDED)
    assert await auth(db, secret) is None


@pytest.mark.fault(41)
async def test_the_database_holds_no_secret(db: Database, seeds: Seeds, database_url: str) -> None:
    async with db.transaction() as tx:
        row, secret = await tokens.mint(tx, seeds.project.id, [], "")
        session = await tokens.open_session(tx, row.id)
    with psycopg.connect(plain_url(database_url)) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        dump = "".join(str(connection.execute(f'SELECT * FROM "{name}"'.encode()).fetchall()) for (name,) in names)
    tail = secret.rpartition("_")[2] if secret.count("_") == 2 else secret[13:]
    assert row.prefix in dump
    assert tail not in dump
    assert session not in dump
