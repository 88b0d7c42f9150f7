"""What all lists of the API have in common (NEEDS D5, D12): filters, sorts, a count, and a fingerprint for the ETag."""

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import BigInteger, ColumnElement, RowMapping, Select, Table, func, literal, select

from service.domain.errors import Invalid
from service.store.database import Tx
from service.store.paging import Sort, fetch_page
from service.store.rows import Page, Slice

T = TypeVar("T")
Condition = Callable[[tuple[str, ...]], ColumnElement[bool]]
UNCHANGING: ColumnElement[int] = literal(0, BigInteger)
"""Version of rows that never change."""


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Every field that is set must hold; a field with several values holds if one of them does."""

    ids: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    facets: Mapping[str, str] = field(default_factory=dict[str, str])
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that clients may ask for, over one table that has ``id``, ``project_id`` and ``created_at``."""

    table: Table
    of: Callable[[RowMapping], T]
    sorts: Mapping[str, Sort]
    filters: Mapping[str, Condition]
    version: ColumnElement[int] = UNCHANGING
    """Differs whenever the row does."""
    labels: ColumnElement[Any] | None = None
    facets: Callable[[str, str], ColumnElement[bool]] | None = None
    always: tuple[ColumnElement[bool], ...] = ()
    columns: tuple[ColumnElement[Any], ...] = ()
    """Those that are read; none: all of the table."""

    async def page(self, tx: Tx, project_id: str, where: ListFilter, sort: str, page: Page) -> Slice[T]:
        """Return a page. Raises Invalid("unknown_sort" | "invalid_cursor" | "invalid_limit")."""
        if sort not in self.sorts:
            raise Invalid("unknown_sort", "this list cannot be sorted so", known=[*self.sorts])
        query = select(*(self.columns or (self.table,))).where(*self._conditions(project_id, where))
        rows, following = await fetch_page(tx, query, self.sorts[sort], self.table.c.id, page)
        return Slice([self.of(row) for row in rows], following)

    async def count(self, tx: Tx, project_id: str, where: ListFilter) -> int:
        query = select(func.count()).select_from(self.table).where(*self._conditions(project_id, where))
        return (await tx.execute(query)).scalar_one()

    async def fingerprint(self, tx: Tx, project_id: str, where: ListFilter) -> str:
        """Return a text that differs whenever what the filter lets through does."""
        query = select().select_from(self.table).where(*self._conditions(project_id, where))
        return await fingerprint(tx, query, self.table.c.id, self.version)

    def _conditions(self, project_id: str, where: ListFilter) -> builtins.list[ColumnElement[bool]]:
        columns = self.table.c
        found: builtins.list[ColumnElement[bool]] = [columns.project_id == project_id, *self.always]
        if where.ids:
            found.append(columns.id.in_(where.ids))
        found += [self.filters[name](values) for name, values in where.values.items() if values]
        if where.labels and self.labels is not None:
            found.append(self.labels.contains(dict(where.labels)))
        if self.facets is not None:
            found += [self.facets(name, value) for name, value in where.facets.items()]
        if where.created_after is not None:
            found.append(columns.created_at > where.created_after)
        if where.created_before is not None:
            found.append(columns.created_at < where.created_before)
        return found


async def fingerprint(tx: Tx, query: Select[Any], id_: ColumnElement[str], version: ColumnElement[int]) -> str:
    """Return count and combined hash of (id, version) of the rows of ``query``, whose columns do not matter.

    One pass without sorting: the hashes are combined by exclusive or, so that a row which was committed late counts
    like any other (its number in some order would not show it).
    """
    both = func.bit_xor(func.hashtextextended(id_, version))
    columns = query.with_only_columns(func.count(), func.coalesce(both, 0), maintain_column_froms=True)
    count, combined = (await tx.execute(columns)).one()
    return f"{count}-{combined & (2**64 - 1):016x}"


def sorts_by(**keys: Sort) -> dict[str, Sort]:
    """Return each sort upwards, and downwards as ``-name``."""
    found: dict[str, Sort] = {}
    for name, sort in keys.items():
        found[name] = sort
        found[f"-{name}"] = Sort(sort.key, sort.parse, descending=True)
    return found


def one_of(column: ColumnElement[Any]) -> Condition:
    return column.in_
