"""Tables of what clients follow: the feed of changed resources, webhooks, one-time tickets."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from service.store.tables import created, metadata, project, time

changes = Table(
    "changes", metadata,
    Column("kind", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    project(),
    # The transaction (xid8) that changed it last: readers go by it up to the oldest one still open, and skip nothing.
    Column("txid", BigInteger, nullable=False),
    time("deleted_at"),  # null: it is there; else a tombstone, which gc takes away after a while
    Column("revision", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "resource_id"),
    Index("ix_changes_order", "project_id", "txid", "kind", "resource_id"),
    Index("ix_changes_deleted", "deleted_at", postgresql_where=text("deleted_at is not null")),
    postgresql_with={"fillfactor": 50},
)  # fmt: skip

tickets = Table(
    "tickets", metadata,
    Column("hash", LargeBinary, primary_key=True),  # sha256 of the ticket
    project(),
    Column("token_id", Text, ForeignKey("tokens.id"), nullable=False),
    Column("path", Text, nullable=False),
    Column("origin", Text),  # null: no browser
    created(), time("expires_at"), time("used_at"),
)  # fmt: skip

webhooks = Table(
    "webhooks", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("url", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),  # encrypted
    Column("events", ARRAY(Text), nullable=False),
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # only of runs that have these
    Column("note", Text, nullable=False, server_default=""),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row
    created(), time("disabled_at"),
    Index("ix_webhooks_project", "project_id"),
)  # fmt: skip

webhook_deliveries = Table(
    "webhook_deliveries", metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("webhook_id", Text, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    project(),
    Column("message_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("state", Text, nullable=False),  # pending | delivered | dead
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("last_status", Integer), Column("last_error", Text),
    created(), time("next_at"), time("ended_at"),
    Index("ix_webhook_deliveries_pending", "webhook_id", "id", postgresql_where=text("state = 'pending'")),
    UniqueConstraint("webhook_id", "message_id"),
    Index("ix_webhook_deliveries_webhook", "webhook_id", "id"),
)  # fmt: skip
