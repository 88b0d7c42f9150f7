"""A process that does operations, to be killed: ``python -m tests.integration.workers.operations_program URL BLOB_DIR [CRASH_DIR]``."""

import asyncio
import signal
import sys
from pathlib import Path

from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.operations.contract import OperationContext
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.notifications import Notifications
from service.workers.jobs import JobsConfig, run_jobs
from service.workers.operations import operation_queue


async def main(url: str, blob_dir: str, crash_dir: str | None = None) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = Database(url)
    crash = CrashPoints(Path(crash_dir) if crash_dir else None)
    ctx = OperationContext(db, BlobStore(Path(blob_dir)), crash, first_pause_s=0.01)
    async with Notifications(url) as notifications:
        await run_jobs(db, notifications, [operation_queue(ctx)], JobsConfig(scan_s=0.5, poll_s=0.1), stop)
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
