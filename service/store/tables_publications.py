"""Table of publications."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import created, metadata, project, time

publications = Table(
    "publications", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("number", Integer, nullable=False),  # of those with this name, from 1
    Column("operation_id", Text, nullable=False),  # that made the export; it is forgotten before this is
    Column("profile", Text, nullable=False),
    Column("hidden", Boolean, nullable=False),  # quotes hidden assets
    Column("public", Boolean, nullable=False, server_default=text("false")),
    Column("archive_sha256", Text, nullable=False), Column("archive_bytes", BigInteger, nullable=False),
    Column("report_sha256", Text, nullable=False),  # as it was published
    Column("shown_sha256", Text, nullable=False), Column("shown_bytes", BigInteger, nullable=False),  # JSON, as it is now
    Column("page_sha256", Text, nullable=False), Column("page_bytes", BigInteger, nullable=False),  # HTML, as it is now
    Column("summary", JSONB, nullable=False),  # title, benchmark, plan, evaluations, denominators
    Column("withdrawn", JSONB, nullable=False, server_default=text("'[]'::jsonb")),  # Withdrawn
    Column("author", Text, nullable=False),  # API token
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("updated_at"),
    UniqueConstraint("project_id", "name", "number", name="uq_publications_number"),
    UniqueConstraint("project_id", "operation_id", "name", name="uq_publications_operation"),
    Index("ix_publications_project_created", "project_id", "created_at", "id"),
)  # fmt: skip
