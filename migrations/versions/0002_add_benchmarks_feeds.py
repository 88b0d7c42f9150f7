"""Create benchmarks, operations, the feed of changes, webhooks, tickets, criteria and integrity reports."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
JSON = JSONB[Any]
DOUBLE = sa.Double[float]()
NOW = sa.text("clock_timestamp()")
COUNTED = ("gradings", "operations", "benchmarks")
FOLLOWED = {"runs": "run", "gradings": "grading", "operations": "operation", "benchmarks": "benchmark"}

# Raised by the database, so that no statement can forget it.
RAISE_REVISION = """
    CREATE FUNCTION raise_revision() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.revision := OLD.revision + 1;
        RETURN NEW;
    END $$"""
# One row per resource. What a transaction changes again it does not write again; a tombstone keeps the last revision.
RECORD_CHANGE = """
    CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        changed record;
    BEGIN
        IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
        INSERT INTO changes AS c (kind, resource_id, project_id, txid, deleted_at, revision)
        VALUES (TG_ARGV[0], changed.id, changed.project_id, pg_current_xact_id()::text::bigint,
                CASE WHEN TG_OP = 'DELETE' THEN clock_timestamp() END, changed.revision)
        ON CONFLICT (kind, resource_id) DO UPDATE
            SET txid = excluded.txid, deleted_at = excluded.deleted_at, revision = excluded.revision
            WHERE c.txid <> excluded.txid OR (c.deleted_at IS NULL) <> (excluded.deleted_at IS NULL);
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF TG_TABLE_NAME = 'runs' AND TG_OP = 'UPDATE' THEN
            IF NEW.last_seq <> OLD.last_seq AND NEW.phase = OLD.phase THEN
                RETURN NULL;
            END IF;
        END IF;
        PERFORM pg_notify('changes', changed.project_id);
        RETURN NULL;
    END $$"""


def upgrade() -> None:
    _add_columns()
    _create_benchmarks()
    _create_operations()
    _create_benchmark_items()
    _create_grading_criteria()
    _create_integrity_reports()
    _create_changes()
    _create_tickets()
    _create_webhooks()
    _create_webhook_deliveries()
    _follow()


def downgrade() -> None:
    for table in FOLLOWED:
        op.execute(f"DROP TRIGGER record_change ON {table}")
    for table in COUNTED:
        op.execute(f"DROP TRIGGER raise_revision ON {table}")
    op.execute("DROP FUNCTION record_change()")
    op.execute("DROP FUNCTION raise_revision()")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
    op.drop_table("tickets")
    op.drop_table("changes")
    op.drop_index("ix_runs_deliverable", "runs")
    op.drop_table("integrity_reports")
    op.drop_table("grading_criteria")
    op.drop_table("benchmark_items")
    op.drop_table("operations")
    op.drop_table("benchmarks")
    op.drop_column("projects", "changes_from")
    op.drop_column("projects", "served_at")
    op.drop_column("projects", "max_runs")
    op.drop_column("hosts", "cordoned")
    op.drop_column("hosts", "slots_limit")
    op.drop_column("gradings", "detail")
    op.drop_column("gradings", "revision")


def _follow() -> None:
    """Let the database count revisions and note changes, also of what is there already."""
    op.execute(RAISE_REVISION)
    op.execute(RECORD_CHANGE)
    for table in COUNTED:
        op.execute(
            f"CREATE TRIGGER raise_revision BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION raise_revision()"
        )
    for table, kind in FOLLOWED.items():
        op.execute(
            f"CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION record_change('{kind}')"
        )
        op.execute(
            "INSERT INTO changes (kind, resource_id, project_id, txid, revision) "  # noqa: S608 - constants only
            f"SELECT '{kind}', id, project_id, pg_current_xact_id()::text::bigint, revision FROM {table}"
        )
    op.execute(
        "INSERT INTO grading_criteria (grading_id, position, criterion, passed, score, max_score, reason, detail) "
        "SELECT g.id, c.place - 1, coalesce(c.value ->> 'id', c.place::text), (c.value ->> 'passed')::boolean, "
        "(c.value ->> 'score')::double precision, (c.value ->> 'max_score')::double precision, c.value ->> 'reason', "
        "c.value - 'id' - 'passed' - 'score' - 'max_score' - 'reason' "
        "FROM gradings g CROSS JOIN LATERAL jsonb_array_elements(g.criteria) WITH ORDINALITY AS c(value, place)"
    )


def _add_columns() -> None:
    op.add_column("gradings", sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False))
    empty = sa.text("'{}'::jsonb")
    op.add_column("gradings", sa.Column("detail", JSONB(), server_default=empty, nullable=False))
    op.add_column("hosts", sa.Column("slots_limit", sa.Integer()))
    op.add_column("hosts", sa.Column("cordoned", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("projects", sa.Column("max_runs", sa.Integer()))
    op.add_column("projects", sa.Column("served_at", TIME))
    op.add_column("projects", sa.Column("changes_from", sa.BigInteger(), server_default="0", nullable=False))


def _create_benchmarks() -> None:
    op.create_table(
        "benchmarks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("manifest", JSON(), nullable=False),
        sa.Column("facets", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("labels", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("updated_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_benchmarks_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmarks")),
        sa.UniqueConstraint("project_id", "name", "version", name=op.f("uq_benchmarks_project_id")),
    )
    op.create_index("ix_benchmarks_project_created", "benchmarks", ["project_id", "created_at", "id"])


def _create_operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("spec", JSON(), nullable=False),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.BigInteger()),
        sa.Column("unit", sa.Text(), server_default="items", nullable=False),
        sa.Column("log", JSON(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("result", JSON()),
        sa.Column("problem", JSON()),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("updated_at", TIME),
        sa.Column("cancel_requested_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_operations_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operations")),
    )
    op.create_index(
        "ix_operations_open", "operations", ["created_at"], postgresql_where=sa.text("state in ('queued', 'running')")
    )
    op.create_index("ix_operations_project_created", "operations", ["project_id", "created_at", "id"])


def _create_benchmark_items() -> None:
    op.create_table(
        "benchmark_items",
        sa.Column("benchmark_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("problems", JSON(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("checked", JSON()),
        sa.ForeignKeyConstraint(
            ["benchmark_id"],
            ["benchmarks.id"],
            name=op.f("fk_benchmark_items_benchmark_id_benchmarks"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_benchmark_items_task_id_tasks")),
        sa.PrimaryKeyConstraint("benchmark_id", "position", name=op.f("pk_benchmark_items")),
        sa.UniqueConstraint("benchmark_id", "key", name=op.f("uq_benchmark_items_benchmark_id")),
    )
    op.create_index("ix_benchmark_items_task", "benchmark_items", ["task_id"])


def _create_grading_criteria() -> None:
    op.create_table(
        "grading_criteria",
        sa.Column("grading_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("criterion", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean()),
        sa.Column("score", DOUBLE),
        sa.Column("max_score", DOUBLE),
        sa.Column("cause", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("detail", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(
            ["grading_id"], ["gradings.id"], name=op.f("fk_grading_criteria_grading_id_gradings"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("grading_id", "position", name=op.f("pk_grading_criteria")),
    )


def _create_integrity_reports() -> None:
    op.create_table(
        "integrity_reports",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("queued", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("problems", sa.Integer(), nullable=True),
        sa.Column("report", JSON(), nullable=True),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_integrity_reports_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_integrity_reports")),
        sa.UniqueConstraint("project_id", "digest", "version", name="uq_integrity_reports_once"),
    )
    op.create_index(
        "ix_integrity_reports_queued", "integrity_reports", ["created_at"], postgresql_where=sa.text("queued")
    )
    op.create_index(
        "ix_runs_deliverable",
        "runs",
        ["deliverable_digest"],
        postgresql_where=sa.text("deliverable_digest is not null"),
    )


def _create_changes() -> None:
    op.create_table(
        "changes",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("txid", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", TIME),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_changes_project_id_projects")),
        sa.PrimaryKeyConstraint("kind", "resource_id", name=op.f("pk_changes")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index("ix_changes_order", "changes", ["project_id", "txid", "kind", "resource_id"])
    op.create_index("ix_changes_deleted", "changes", ["deleted_at"], postgresql_where=sa.text("deleted_at is not null"))


def _create_tickets() -> None:
    op.create_table(
        "tickets",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("used_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tickets_project_id_projects")),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_tickets_token_id_tokens")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_tickets")),
    )


def _create_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("events", ARRAY(sa.Text()), nullable=False),
        sa.Column("labels", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("disabled_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_webhooks_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_project", "webhooks", ["project_id"])


def _create_webhook_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_status", sa.Integer()),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("next_at", TIME),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_webhook_deliveries_project_id_projects")
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("webhook_id", "message_id", name=op.f("uq_webhook_deliveries_webhook_id")),
    )
    op.create_index(
        "ix_webhook_deliveries_pending",
        "webhook_deliveries",
        ["webhook_id", "id"],
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index("ix_webhook_deliveries_webhook", "webhook_deliveries", ["webhook_id", "id"])
