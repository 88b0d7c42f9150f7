"""What the tasks of a benchmark state of their worth and of their files, read out of their manifests."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import BigInteger, ColumnElement, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import JSONB

from service.domain.benchmark_cards import Worth
from service.domain.benchmarks import ItemStatus
from service.store.database import Tx
from service.store.tables import tasks
from service.store.tables_benchmarks import benchmark_items

USABLE = (ItemStatus.OK, ItemStatus.DISPUTED)
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Format:
    """Visible files of one suffix."""

    suffix: str | None
    """Lower-case, without the dot; null: the files have none."""
    tasks: int
    files: int
    size_bytes: int


_ITEMS = benchmark_items.join(tasks, tasks.c.id == benchmark_items.c.task_id)


def _usable_of(benchmark_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return benchmark_items.c.benchmark_id == benchmark_id, benchmark_items.c.status.in_(USABLE)


async def worths(tx: Tx, benchmark_id: str) -> list[Worth]:
    """Return one entry per usable item. The caller checked the project."""
    price = tasks.c.manifest["price"]
    columns = (price["usd"].astext, price["basis"].astext, tasks.c.manifest["human_time_s"].astext)
    query = select(*columns).select_from(_ITEMS).where(*_usable_of(benchmark_id))
    return [_worth(*row) for row in await tx.execute(query)]


async def prices(tx: Tx, benchmark_id: str) -> dict[str, Decimal | None]:
    """Return the price of every item that has a task, by key, US dollars. The caller checked the project."""
    query = select(benchmark_items.c.key, tasks.c.manifest["price"]["usd"].astext).select_from(_ITEMS)
    rows = await tx.execute(query.where(benchmark_items.c.benchmark_id == benchmark_id))
    return {key: None if usd is None else Decimal(usd) for key, usd in rows}


def _worth(usd: str | None, basis: str | None, seconds: str | None) -> Worth:
    hours = None if seconds is None else float(seconds) / SECONDS_PER_HOUR
    return Worth(None if usd is None else Decimal(usd), basis, hours)


async def formats(tx: Tx, benchmark_id: str, most: int) -> Sequence[Format]:
    """Return the ``most`` frequent suffixes of visible files of usable items. The caller checked the project."""
    file = func.jsonb_array_elements(tasks.c.manifest["visible"]).table_valued(column("value", JSONB), name="file")
    suffix = func.lower(func.substring(file.c.value["path"].astext, r"\.([A-Za-z0-9]{1,12})$"))
    size = func.sum(cast(file.c.value["size_bytes"].astext, BigInteger))
    found = (suffix, func.count(tasks.c.id.distinct()).label("tasks"), func.count(), size)
    query = select(*found).select_from(_ITEMS.join(file, true())).where(*_usable_of(benchmark_id)).group_by(suffix)
    rows = await tx.execute(query.order_by(found[1].desc(), suffix).limit(most))
    return [Format(row[0], row[1], row[2], int(row[3])) for row in rows]
