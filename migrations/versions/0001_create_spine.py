"""Create the tables of the spine: projects, tokens, blobs, tasks, agents, runs, attempts, events, gradings."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

EVENT_PARTITIONS = 16
TIME = sa.DateTime(timezone=True)
JSON = JSONB[Any]
DOUBLE = sa.Double[float]()
NOW = sa.text("clock_timestamp()")


def _nullable(type_: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_) for name in names]


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("fence_seq")))
    _create_hosts()
    _create_projects()
    _create_run_events()
    _create_audit_log()
    _create_blob_refs()
    _create_idempotency_keys()
    _create_scaffolds()
    _create_tasks()
    _create_tokens()
    _create_agents()
    _create_sessions()
    _create_runs()
    _create_artifacts()
    _create_attempts()
    _create_gradings()


def downgrade() -> None:
    op.drop_table("gradings")
    op.drop_table("attempts")
    op.drop_table("artifacts")
    op.drop_table("runs")
    op.drop_table("sessions")
    op.drop_table("agents")
    op.drop_table("tokens")
    op.drop_table("tasks")
    op.drop_table("scaffolds")
    op.drop_table("idempotency_keys")
    op.drop_table("blob_refs")
    op.drop_table("audit_log")
    op.drop_table("run_events")
    op.drop_table("projects")
    op.drop_table("hosts")
    op.execute(sa.schema.DropSequence(sa.Sequence("fence_seq")))


def _create_hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("runtimes", ARRAY(sa.Text()), nullable=False),
        sa.Column("environments", ARRAY(sa.Text()), nullable=False),
        sa.Column("labels", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("facts", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("beat_at", TIME, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hosts")),
    )


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("untrusted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )


def _create_run_events() -> None:
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_offset", sa.BigInteger(), nullable=False),
        sa.Column("ts", TIME, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("v", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("payload", JSON(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_events")),
        sa.UniqueConstraint("run_id", "attempt", "source", "source_offset", name="uq_run_events_source"),
        postgresql_partition_by="HASH (run_id)",
    )
    for n in range(EVENT_PARTITIONS):
        op.execute(
            f"CREATE TABLE run_events_p{n} PARTITION OF run_events"
            f" FOR VALUES WITH (MODULUS {EVENT_PARTITIONS}, REMAINDER {n})"
        )


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_audit_log_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )


def _create_blob_refs() -> None:
    op.create_table(
        "blob_refs",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("owner_kind", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_blob_refs_project_id_projects")),
        sa.PrimaryKeyConstraint("digest", "owner_kind", "owner_id", name=op.f("pk_blob_refs")),
    )
    op.create_index("ix_blob_refs_owner", "blob_refs", ["owner_kind", "owner_id"])
    op.create_index("ix_blob_refs_project_digest", "blob_refs", ["project_id", "digest"])


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("response", JSON()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_idempotency_keys_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", "route", "key", name=op.f("pk_idempotency_keys")),
    )


def _create_scaffolds() -> None:
    op.create_table(
        "scaffolds",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("manifest", JSON(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_scaffolds_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scaffolds")),
        sa.UniqueConstraint("project_id", "name", "version", name=op.f("uq_scaffolds_project_id")),
    )


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("manifest", JSON(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_tasks_project_id")),
    )


def _create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", ARRAY(sa.Text()), nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("attempt", sa.Integer()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *_nullable(TIME, "expires_at", "revoked_at", "last_used_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tokens_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("prefix", name=op.f("uq_tokens_prefix")),
    )


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("scaffold_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("spec", JSON(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_agents_project_id_projects")),
        sa.ForeignKeyConstraint(["scaffold_id"], ["scaffolds.id"], name=op.f("fk_agents_scaffold_id_scaffolds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_agents_project_id")),
        sa.UniqueConstraint("project_id", "label", name="uq_agents_label"),
    )


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id_tokens")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("hold", JSON()),
        *_nullable(sa.Text(), "outcome", "ended_because"),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("sample", sa.Integer(), server_default="1", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.SmallInteger(), server_default="3", nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("derived_from", sa.Text()),
        sa.Column("limits", JSON(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("runtime", sa.Text()),
        sa.Column("labels", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("flags", ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("stop_mode", sa.Text()),
        sa.Column("stop_requested_at", TIME),
        sa.Column("last_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("event_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_text_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_event_at", TIME),
        sa.Column("turns", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tool_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("doing", sa.Text()),
        *_nullable(DOUBLE, "queue_s", "provision_s", "wall_s"),
        sa.Column("waited_for_host_s", DOUBLE, server_default="0", nullable=False),
        *_nullable(sa.BigInteger(), "memory_peak_bytes", "disk_used_bytes"),
        sa.Column("deliverable_digest", sa.Text()),
        sa.Column("deliverable_files", sa.Integer(), server_default="0", nullable=False),
        sa.Column("deliverable_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deliverable_problems", sa.Integer(), server_default="0", nullable=False),
        sa.Column("plan", sa.Text(), server_default="task@1", nullable=False),
        sa.Column("verdict_state", sa.Text(), server_default="pending", nullable=False),
        *_nullable(DOUBLE, "score", "max_score"),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *_nullable(TIME, "queued_at", "started_at", "deadline_at", "ended_at", "graded_at"),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_runs_agent_id_agents")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_runs_project_id_projects")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_runs_task_id_tasks")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index("ix_runs_phase", "runs", ["phase"], postgresql_where=sa.text("phase <> 'done'"))
    op.create_index("ix_runs_project_created", "runs", ["project_id", "created_at", "id"])
    op.create_index(
        "ix_runs_queue",
        "runs",
        ["project_id", sa.literal_column("priority DESC"), "queued_at"],
        postgresql_where=sa.text("phase = 'queued'"),
    )


def _create_artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        *_nullable(sa.Text(), "sha256", "mime", "link_target"),
        sa.Column("mtime", DOUBLE),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_artifacts_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("pk_artifacts")),
    )
    op.create_index("ix_artifacts_path", "artifacts", ["run_id", sa.literal_column("md5(path)")])


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        *_nullable(sa.Text(), "sandbox_id", "runtime", "environment_image", "kit_image"),
        *_nullable(JSON(), "argv", "env", "attestation"),
        sa.Column("ended_because", sa.Text()),
        sa.Column("evidence", JSON()),
        sa.Column("logs", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("offsets", JSON(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *_nullable(TIME, "bound_at", "started_at", "deadline_at", "ended_at", "collected_at", "released_at"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_attempts_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "n", name=op.f("pk_attempts")),
    )
    op.create_index(
        "ix_attempts_host",
        "attempts",
        ["host_id"],
        postgresql_where=sa.text("state not in ('released', 'lost')"),
    )
    op.create_index("ix_attempts_sandbox", "attempts", ["sandbox_id"])


def _create_gradings() -> None:
    op.create_table(
        "gradings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("deliverable_digest", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("method_version", sa.Text(), nullable=False),
        sa.Column("settings", JSON(), nullable=False),
        sa.Column("settings_digest", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("primary", sa.Boolean(), nullable=False),
        sa.Column("round", sa.Integer(), server_default="1", nullable=False),
        sa.Column("vote", sa.Integer(), server_default="1", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        *_nullable(DOUBLE, "score", "max_score"),
        sa.Column("cause", sa.Text()),
        sa.Column("criteria", JSON(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *_nullable(TIME, "started_at", "graded_at"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_gradings_project_id_projects")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_gradings_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gradings")),
        sa.UniqueConstraint(
            "run_id",
            "deliverable_digest",
            "method",
            "method_version",
            "settings_digest",
            "round",
            "vote",
            name="uq_gradings_once",
        ),
    )
    op.create_index(
        "ix_gradings_open",
        "gradings",
        ["created_at"],
        postgresql_where=sa.text("state in ('pending', 'grading')"),
    )
    op.create_index("ix_gradings_run", "gradings", ["run_id"])
