"""Waiting for a file descriptor on the event loop."""

import asyncio


async def readable(fd: int) -> None:
    """Return when ``fd`` can be read. Nothing is taken from it, so a cancelled wait loses nothing."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(fd, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(fd)
