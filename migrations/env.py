"""Runs migrations on a connection that the caller gives (service/store/migrate.py), or on `alembic -x url=…`."""

from typing import TYPE_CHECKING, cast

from alembic import context
from sqlalchemy import Connection, create_engine

from service.store import (
    tables_annotations,
    tables_benchmarks,
    tables_campaigns,
    tables_desktop,
    tables_embeddings,
    tables_evaluations,
    tables_feeds,
    tables_forecasts,
    tables_grading,
    tables_models,
    tables_publications,
)
from service.store.tables import EVENT_PARTITION_NAME, metadata

if TYPE_CHECKING:
    from sqlalchemy.sql.schema import SchemaItem


_TABLES = (
    tables_annotations.annotations,
    tables_benchmarks.benchmarks,
    tables_campaigns.campaigns,
    tables_desktop.pauses,
    tables_embeddings.embeddings,
    tables_feeds.changes,
    tables_evaluations.evaluations,
    tables_forecasts.forecasts,
    tables_grading.votes,
    tables_models.models,
    tables_publications.publications,
)
assert all(t.metadata is metadata for t in _TABLES)


def _ours(item: "SchemaItem", name: str | None, type_: str, *_: object) -> bool:
    """Leave out the partitions of run_events: they follow their parent."""
    del item
    return not (type_ == "table" and EVENT_PARTITION_NAME.fullmatch(name or ""))


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=_ours,
        compare_server_default=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    given = cast("Connection | None", context.config.attributes.get("connection"))
    if given is not None:
        _run(given)
        return
    url = context.get_x_argument(as_dictionary=True).get("url", "")
    with create_engine(url).begin() as connection:
        _run(connection)


main()
