"""What every process of the service has: a log, a database, signals, points where tests kill it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from service import logs
from service.lifecycle.crash_points import CrashPoints
from service.settings import Settings
from service.store import migrate
from service.store.database import Database
from service.store.notifications import Notifications


def run_process(process: Callable[[Settings, AsyncExitStack], Awaitable[None]]) -> None:
    """Run ``process`` by the settings of this environment; what it put on the stack is closed when it ends."""
    settings = Settings()
    logs.configure(settings.log_level)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await process(settings, stack)

    asyncio.run(run())


def signalled() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def database(settings: Settings, stack: AsyncExitStack) -> tuple[Database, Notifications]:
    url = settings.require_database_url()
    await asyncio.to_thread(migrate.check, url)
    db = Database(url)
    stack.push_async_callback(db.close)
    return db, await stack.enter_async_context(Notifications(url))


def crash_points(settings: Settings) -> CrashPoints:
    return CrashPoints(settings.data_dir if settings.crash_tests else None)
