"""The pool of engine calls: deadlines, stuck threads counted, nothing queued behind an engine that hangs."""

import asyncio
import threading
import time

import pytest

from service.sandboxes.contract import EngineError
from service.sandboxes.docker.calls import CallPool


async def settled(pool: CallPool, stuck: int) -> None:
    for _ in range(200):
        if pool.stuck == stuck:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{pool.stuck} stuck, not {stuck}")


async def test_results_and_errors_reach_the_caller() -> None:
    pool = CallPool(2)
    assert await pool.run("one", 5, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        await pool.run("div", 5, lambda: 1 // 0)
    pool.close()


@pytest.mark.fault(113)
async def test_a_call_past_its_deadline_is_an_engine_error_and_counted() -> None:
    pool, gate = CallPool(2), threading.Event()
    began = time.monotonic()
    with pytest.raises(EngineError, match="no answer within"):
        await pool.run("hang", 0.1, gate.wait)
    assert time.monotonic() - began < 2
    assert pool.stuck == 1
    assert await pool.run("other", 5, lambda: "served") == "served"
    gate.set()
    await settled(pool, 0)
    pool.close()


@pytest.mark.fault(113)
async def test_when_all_hang_further_calls_fail_at_once() -> None:
    pool, gate = CallPool(3), threading.Event()
    hanging = [pool.run("hang", 0.1, gate.wait) for _ in range(3)]
    results = await asyncio.gather(*hanging, return_exceptions=True)
    assert all(isinstance(r, EngineError) for r in results)
    assert pool.threads == 3
    began = time.monotonic()
    with pytest.raises(EngineError, match="all 3 engine calls hang"):
        await pool.run("more", 30, lambda: 1)
    assert time.monotonic() - began < 1
    gate.set()
    await settled(pool, 0)
    assert await pool.run("again", 5, lambda: 1) == 1
    pool.close()


async def test_a_call_given_up_while_queued_is_never_done() -> None:
    pool, gate, done = CallPool(1), threading.Event(), list[int]()
    first = asyncio.create_task(pool.run("first", 5, gate.wait))
    await asyncio.sleep(0.05)
    with pytest.raises(EngineError):
        await pool.run("second", 0.1, lambda: done.append(1))
    gate.set()
    await first
    assert await pool.run("third", 5, lambda: "done") == "done"
    assert not done
    assert pool.stuck == 0
    pool.close()


async def test_a_cancelled_call_is_counted_until_it_returns() -> None:
    pool, gate = CallPool(1), threading.Event()
    task = asyncio.create_task(pool.run("hang", 60, gate.wait))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert pool.stuck == 1
    gate.set()
    await settled(pool, 0)
    pool.close()


async def test_threads_are_bounded_and_end_with_the_pool() -> None:
    pool = CallPool(4)
    await asyncio.gather(*(pool.run("many", 10, lambda: time.sleep(0.001)) for _ in range(200)))
    assert pool.threads <= 4
    pool.close()
    for _ in range(100):
        if pool.threads == 0:
            break
        await asyncio.sleep(0.01)
    assert pool.threads == 0
    with pytest.raises(EngineError, match="closed"):
        await pool.run("late", 1, lambda: 1)
