"""Warm sandboxes: bounded, used once, refilled behind, gone at the end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from service.sandboxes.contract import EngineError, Sandbox, SandboxSpec
from service.sandboxes.docker import warm_pool
from service.sandboxes.docker.warm_pool import WarmPool
from service.testing.memory_sandbox import MemoryBackend, MemorySandbox
from service.testing.sandbox_bench import SMALL


@pytest.fixture
async def backend() -> AsyncIterator[MemoryBackend]:
    made = MemoryBackend()
    yield made
    assert await made.list_ids() == [], "the pool left sandboxes"
    made.host.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("did not happen")


def spec(pids: int = 128) -> SandboxSpec:
    return SandboxSpec("sha256:" + "0" * 64, limits=SMALL.model_copy(update={"pids": pids}))


async def test_the_first_take_is_cold_the_next_are_warm_and_each_is_used_once(backend: MemoryBackend) -> None:
    pool = WarmPool(backend, per_key=2, total=4)
    assert await pool.take(spec()) is None
    await until(lambda: pool.size == 2)
    taken: list[Sandbox] = []
    for _ in range(3):
        await until(lambda: pool.size > 0)
        sandbox = await pool.take(spec())
        assert sandbox is not None
        assert sandbox.id not in pool.ids()
        taken.append(sandbox)
    assert len({s.id for s in taken}) == 3
    await pool.close()
    for sandbox in taken:
        await sandbox.destroy()


async def test_another_spec_is_not_served(backend: MemoryBackend) -> None:
    pool = WarmPool(backend)
    pool.expect(spec(64))
    await until(lambda: pool.size == 1)
    assert await pool.take(spec(65)) is None
    different_clock = replace(spec(64), limits=spec(64).limits.model_copy(update={"wall_clock_s": 5}))
    sandbox = await pool.take(different_clock)
    assert sandbox is not None, "what is not part of the container does not count"
    await sandbox.destroy()
    await pool.close()


async def test_the_total_is_bounded_and_older_keys_give_way(backend: MemoryBackend) -> None:
    pool = WarmPool(backend, per_key=1, total=3)
    for pids in range(60, 70):
        pool.expect(spec(pids))
        await asyncio.sleep(0.02)
        assert pool.size <= 4
    await until(lambda: pool.size == 3)
    assert len(await backend.list_ids()) == 3
    await pool.close()


async def test_a_dead_one_is_not_handed_out(backend: MemoryBackend) -> None:
    pool = WarmPool(backend)
    pool.expect(spec())
    await until(lambda: pool.size == 1)
    (sandbox_id,) = pool.ids()
    await (await backend.attach(sandbox_id)).kill()
    taken = await pool.take(spec())
    assert taken is None or taken.id != sandbox_id
    if taken is not None:
        await taken.destroy()
    assert sandbox_id not in await backend.list_ids()
    await pool.close()


async def test_too_old_ones_are_replaced(backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_pool, "SWEEP_S", 0.02)
    pool = WarmPool(backend, ttl_s=0.05)
    pool.expect(spec())
    await until(lambda: pool.size == 1)
    first = pool.ids()
    await until(lambda: pool.size == 1 and pool.ids() != first)
    await pool.close()


async def test_a_failing_engine_is_asked_again_later(monkeypatch: pytest.MonkeyPatch, backend: MemoryBackend) -> None:
    monkeypatch.setattr(warm_pool, "RETRY_S", 0.02)
    calls: list[int] = []
    make = backend.make

    async def flaky(wanted: SandboxSpec) -> MemorySandbox:
        calls.append(1)
        if len(calls) < 3:
            raise EngineError("engine_error", "no")
        return await make(wanted)

    monkeypatch.setattr(backend, "make", flaky)
    pool = WarmPool(backend)
    pool.expect(spec())
    await until(lambda: pool.size == 1)
    await pool.close()


async def test_a_closed_pool_makes_nothing(backend: MemoryBackend) -> None:
    pool = WarmPool(backend)
    await pool.close()
    assert await pool.take(spec()) is None
    await asyncio.sleep(0.05)
    assert await backend.list_ids() == []


async def test_it_gives_way_to_what_runs_were_promised(backend: MemoryBackend) -> None:
    one = SMALL.memory_bytes
    pool = WarmPool(backend, per_key=2, total=4)
    pool.allow(3 * one)
    pool.expect(spec(64))
    pool.expect(spec(65))
    await until(lambda: pool.size == 3)
    await asyncio.sleep(0.1)
    assert pool.memory_bytes == 3 * one
    pool.allow(one)
    await until(lambda: pool.size == 1)
    pool.allow(0)
    await until(lambda: pool.size == 0)
    pool.allow(None)
    await until(lambda: pool.size == 4)
    await pool.close()
