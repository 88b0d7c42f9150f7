"""Change the phases of runs (their ids on standard input) at a pace, on several connections; print the seconds it took."""

import asyncio
import sys
import time

import psycopg

_CHANGE = """UPDATE runs SET phase = 'done', outcome = 'ungraded', ended_because = 'completed', revision = revision + 1,
    updated_at = clock_timestamp() WHERE id = %s"""


async def _write(url: str, ids: list[str], began: float, apart_s: float) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as one:
        for n, run_id in enumerate(ids):
            await asyncio.sleep(max(0.0, began + n * apart_s - time.perf_counter()))
            await one.execute(_CHANGE, [run_id])


async def _main(url: str, writers: int, per_s: float) -> float:
    ids = sys.stdin.read().split()
    began = time.perf_counter()
    await asyncio.gather(*(_write(url, ids[w::writers], began, writers / per_s) for w in range(writers)))
    return time.perf_counter() - began


print(asyncio.run(_main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
