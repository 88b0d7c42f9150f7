"""The database's clock, by which leases and deadlines are kept."""

from datetime import datetime
from typing import cast

from sqlalchemy import func, select

from service.store.database import Tx


async def now(tx: Tx) -> datetime:
    return cast(datetime, (await tx.execute(select(func.clock_timestamp()))).scalar_one())
