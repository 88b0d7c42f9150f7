"""Create grading plans, votes, evidence documents, reviews of verdicts, regrades, probes; widen gradings."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
DOUBLE = sa.Double[float]()
NOW = sa.text("clock_timestamp()")
EMPTY = sa.text("'{}'::jsonb")


def upgrade() -> None:
    _widen_gradings()
    _create_grading_plans()
    _create_votes()
    _create_evidence_documents()
    _create_verdict_reviews()
    _create_regrades()
    _create_judge_probes()


def downgrade() -> None:
    op.drop_table("judge_probe_outcomes")
    for name in ("judge_probes", "regrade_runs", "regrades", "verdict_reviews", "evidence_documents", "votes"):
        op.drop_table(name)
    op.drop_table("grading_plans")
    op.drop_index("ix_model_requests_subject", table_name="model_requests")
    op.drop_column("model_requests", "subject")
    op.drop_column("runs", "next_plan")
    for name in ("regrade_id", "put_offs", "not_before", "priority", "queue"):
        op.drop_column("gradings", name)


def _widen_gradings() -> None:
    op.add_column("gradings", sa.Column("queue", sa.Text(), server_default="rooms", nullable=False))
    op.add_column("gradings", sa.Column("priority", sa.Integer(), server_default="0", nullable=False))
    op.add_column("gradings", sa.Column("not_before", TIME))
    op.add_column("gradings", sa.Column("put_offs", sa.Integer(), server_default="0", nullable=False))
    op.add_column("gradings", sa.Column("regrade_id", sa.Text()))
    op.add_column("model_requests", sa.Column("subject", sa.Text()))
    op.add_column("runs", sa.Column("next_plan", sa.Text()))
    op.create_index(
        "ix_model_requests_subject", "model_requests", ["subject"], postgresql_where=sa.text("subject is not null")
    )


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id_projects")


def _of(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete="CASCADE")


def _create_grading_plans() -> None:
    op.create_table(
        "grading_plans",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("grading_plans"),
        sa.PrimaryKeyConstraint("id", name="pk_grading_plans"),
        sa.UniqueConstraint("project_id", "name", "version", name="uq_grading_plans_version"),
    )


def _create_votes() -> None:
    op.create_table(
        "votes",
        sa.Column("grading_id", sa.Text(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("content", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("cause", sa.Text()),
        sa.Column("asks", sa.Integer(), server_default="1", nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("template", sa.Text(), server_default="", nullable=False),
        sa.Column("template_sha256", sa.Text()),
        sa.Column("rendered_sha256", sa.Text()),
        sa.Column("usage", JSONB()),
        sa.Column("took_s", DOUBLE),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("votes"),
        _of("votes", "grading_id", "gradings"),
        sa.PrimaryKeyConstraint("grading_id", "judge", "item", "n", name="pk_votes"),
    )


def _create_evidence_documents() -> None:
    op.create_table(
        "evidence_documents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("queued", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cause", sa.Text()),
        sa.Column("sha256", sa.Text()),
        sa.Column("size_bytes", sa.BigInteger()),
        sa.Column("files", sa.Integer()),
        sa.Column("failed_files", sa.Integer()),
        sa.Column("omitted_chars", sa.BigInteger()),
        sa.Column("took_s", DOUBLE),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("made_at", TIME),
        _project("evidence_documents"),
        sa.PrimaryKeyConstraint("id", name="pk_evidence_documents"),
        sa.UniqueConstraint("project_id", "digest", "version", name="uq_evidence_documents_once"),
    )
    op.create_index(
        "ix_evidence_documents_queued", "evidence_documents", ["created_at"], postgresql_where=sa.text("queued")
    )


def _create_verdict_reviews() -> None:
    op.create_table(
        "verdict_reviews",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("grading_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("score", DOUBLE),
        sa.Column("max_score", DOUBLE),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("withdrawn_at", TIME),
        _project("verdict_reviews"),
        _of("verdict_reviews", "run_id", "runs"),
        _of("verdict_reviews", "grading_id", "gradings"),
        sa.PrimaryKeyConstraint("id", name="pk_verdict_reviews"),
    )
    op.create_index("ix_verdict_reviews_grading", "verdict_reviews", ["grading_id"])
    op.create_index("ix_verdict_reviews_run", "verdict_reviews", ["run_id"])


def _create_regrades() -> None:
    op.create_table(
        "regrades",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("estimate", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("comparison", JSONB()),
        sa.Column("round", sa.Integer(), server_default="1", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        _project("regrades"),
        sa.PrimaryKeyConstraint("id", name="pk_regrades"),
    )
    op.create_index(
        "ix_regrades_open", "regrades", ["created_at"], postgresql_where=sa.text("state in ('sampling', 'running')")
    )
    op.create_table(
        "regrade_runs",
        sa.Column("regrade_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sampled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("step", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("before_plan", sa.Text(), nullable=False),
        sa.Column("before", DOUBLE),
        _of("regrade_runs", "regrade_id", "regrades"),
        _of("regrade_runs", "run_id", "runs"),
        sa.PrimaryKeyConstraint("regrade_id", "run_id", name="pk_regrade_runs"),
    )


def _create_judge_probes() -> None:
    op.create_table(
        "judge_probes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text()),
        sa.Column("report", JSONB(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("judge_probes"),
        sa.PrimaryKeyConstraint("id", name="pk_judge_probes"),
        sa.UniqueConstraint("operation_id", name="uq_judge_probes_operation"),
    )
    op.create_table(
        "judge_probe_outcomes",
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text(), nullable=False),
        sa.Column("outcome", JSONB(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _of("judge_probe_outcomes", "operation_id", "operations"),
        sa.PrimaryKeyConstraint("operation_id", "run_id", "condition", name="pk_judge_probe_outcomes"),
    )
