"""Many things at once, but not all at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


async def together(work: Callable[[A], Awaitable[T]], items: Sequence[A], at_once: int) -> list[T]:
    """Return ``work`` of each item, in order, ``at_once`` of them at a time. The first error ends the others."""
    places = asyncio.Semaphore(at_once)

    async def one(item: A) -> T:
        async with places:
            return await work(item)

    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
