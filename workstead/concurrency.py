"""The same work on many things, some at once: for the asynchronous client, and for the synchronous one by threads."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


async def each_async(things: Sequence[T], work: Callable[[T], Awaitable[object]], at_once: int) -> None:
    """Do ``work`` on each, at most ``at_once`` at a time. Raises the first error, once no work is left running."""
    left = iter(things)

    async def take() -> None:
        for thing in left:
            await work(thing)

    tasks = [asyncio.create_task(take()) for _ in range(min(at_once, len(things)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def each(things: Sequence[T], work: Callable[[T], object], at_once: int) -> None:
    """As :func:`each_async`, in threads."""
    with ThreadPoolExecutor(max(1, min(at_once, len(things)))) as pool:
        jobs = [pool.submit(work, thing) for thing in things]
        try:
            wait(jobs, return_when=FIRST_EXCEPTION)
        finally:
            for job in jobs:
                job.cancel()
    for job in jobs:
        if not job.cancelled():
            job.result()
