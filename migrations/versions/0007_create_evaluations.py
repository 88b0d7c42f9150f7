"""Create evaluations; the database keeps their counts with their runs; invalidations and notes of runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
NOW = sa.text("clock_timestamp()")
EMPTY = sa.text("'{}'::jsonb")
TABLES = (
    "contamination_scans", "run_notes", "run_invalidations", "evaluation_log", "evaluation_tasks", "evaluation_agents", "evaluations",
)  # fmt: skip
# Both are rows of {phase, outcome, ended_because}; null: nothing to take away, or nothing to add.
COUNT_MOVED = """
    CREATE FUNCTION count_moved(counts jsonb, was jsonb, is_now jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE
        section text;
        before text;
        after text;
        part jsonb;
    BEGIN
        FOREACH section IN ARRAY ARRAY['phase', 'outcome', 'ended_because'] LOOP
            before := was ->> section;
            after := is_now ->> section;
            CONTINUE WHEN before IS NOT DISTINCT FROM after;
            part := coalesce(counts -> section, '{}'::jsonb);
            IF before IS NOT NULL THEN
                part := part || jsonb_build_object(before, coalesce((part ->> before)::bigint, 0) - 1);
            END IF;
            IF after IS NOT NULL THEN
                part := part || jsonb_build_object(after, coalesce((part ->> after)::bigint, 0) + 1);
            END IF;
            counts := counts || jsonb_build_object(section, part);
        END LOOP;
        RETURN counts;
    END $$"""
# The evaluation first, then the agent: two transactions of one evaluation wait for each other and never in a circle.
COUNT_RUN = """
    CREATE FUNCTION count_run() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        was jsonb := jsonb_build_object('phase', OLD.phase, 'outcome', OLD.outcome, 'ended_because', OLD.ended_because);
        is_now jsonb := '{}'::jsonb;
        gone integer := 1;
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            is_now := jsonb_build_object('phase', NEW.phase, 'outcome', NEW.outcome, 'ended_because', NEW.ended_because);
            gone := 0;
        END IF;
        UPDATE evaluations SET counts = count_moved(counts, was, is_now), total = total - gone,
            updated_at = clock_timestamp(),
            state = CASE WHEN state NOT IN ('running', 'done') THEN state
                         WHEN coalesce((count_moved(counts, was, is_now) -> 'phase' ->> 'done')::bigint, 0) >= total - gone
                         THEN 'done' ELSE 'running' END,
            ended_at = CASE WHEN state NOT IN ('running', 'done') THEN ended_at
                            WHEN coalesce((count_moved(counts, was, is_now) -> 'phase' ->> 'done')::bigint, 0) >= total - gone
                            THEN coalesce(ended_at, clock_timestamp()) END
         WHERE id = OLD.evaluation_id;
        UPDATE evaluation_agents SET counts = count_moved(counts, was, is_now), total = total - gone
         WHERE evaluation_id = OLD.evaluation_id AND agent_id = OLD.agent_id;
        RETURN NULL;
    END $$"""
COUNTING = (
    "CREATE CONSTRAINT TRIGGER count_run AFTER UPDATE ON runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
    "WHEN (OLD.evaluation_id IS NOT NULL AND (OLD.phase, OLD.outcome, OLD.ended_because) "
    "IS DISTINCT FROM (NEW.phase, NEW.outcome, NEW.ended_because)) EXECUTE FUNCTION count_run()",
    "CREATE CONSTRAINT TRIGGER count_run_gone AFTER DELETE ON runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
    "WHEN (OLD.evaluation_id IS NOT NULL) EXECUTE FUNCTION count_run()",
)


def upgrade() -> None:
    _create_evaluations()
    _create_members()
    _create_log()
    _create_invalidations()
    _create_notes()
    _create_scans()
    op.add_column("runs", sa.Column("evaluation_id", sa.Text()))
    op.create_index(
        "ix_runs_evaluation", "runs", ["evaluation_id", "agent_id", "task_id"],
        postgresql_where=sa.text("evaluation_id is not null"),
    )  # fmt: skip
    op.create_index(
        "ix_runs_evaluation_queue", "runs", ["evaluation_id", "agent_id", sa.text("priority DESC"), "queued_at", "id"],
        postgresql_where=sa.text("phase = 'queued' and evaluation_id is not null"),
    )  # fmt: skip
    op.create_index(
        "ix_runs_order", "runs", ["project_id", "evaluation_id", sa.text("priority DESC"), "queued_at", "id"],
        postgresql_where=sa.text("phase = 'queued'"),
    )  # fmt: skip
    op.add_column("projects", sa.Column("budget", JSONB()))
    op.add_column("projects", sa.Column("spend", JSONB(), server_default=EMPTY, nullable=False))
    op.execute(
        "CREATE TRIGGER raise_revision BEFORE UPDATE ON evaluations FOR EACH ROW EXECUTE FUNCTION raise_revision()"
    )
    op.execute(
        "CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON evaluations "
        "FOR EACH ROW EXECUTE FUNCTION record_change('evaluation')"
    )
    for statement in (COUNT_MOVED, COUNT_RUN, *COUNTING):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TRIGGER count_run_gone ON runs")
    op.execute("DROP TRIGGER count_run ON runs")
    op.execute("DROP FUNCTION count_run()")
    op.execute("DROP FUNCTION count_moved(jsonb, jsonb, jsonb)")
    op.drop_index("ix_runs_order", "runs")
    op.drop_index("ix_runs_evaluation_queue", "runs")
    op.drop_index("ix_runs_evaluation", "runs")
    op.drop_column("projects", "spend")
    op.drop_column("projects", "budget")
    op.drop_column("runs", "evaluation_id")
    for name in TABLES:
        op.drop_table(name)
    op.execute("DELETE FROM changes WHERE kind = 'evaluation'")


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id_projects")


def _of(table: str, column: str, other: str, ondelete: str | None = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def _create_evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("resolved", JSONB(), nullable=False),
        sa.Column("benchmark_id", sa.Text()),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.Integer(), server_default="0", nullable=False),
        sa.Column("counts", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("estimate", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("preflight", JSONB()),
        sa.Column("spend", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("budget", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("stop_rules", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("concurrency", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("hold", JSONB()),
        sa.Column("labels", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *(sa.Column(name, TIME) for name in ("started_at", "ended_at", "updated_at")),
        _project("evaluations"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index("ix_evaluations_project_created", "evaluations", ["project_id", "created_at", "id"])
    op.create_index(
        "ix_evaluations_open", "evaluations", ["created_at"],
        postgresql_where=sa.text("state in ('checking', 'running', 'stopped')"),
    )  # fmt: skip


def _create_members() -> None:
    op.create_table(
        "evaluation_agents",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("settings", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("total", sa.Integer(), server_default="0", nullable=False),
        sa.Column("counts", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("hold", JSONB()),
        sa.Column("rules_from", TIME),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _of("evaluation_agents", "evaluation_id", "evaluations"),
        _of("evaluation_agents", "agent_id", "agents", None),
        sa.PrimaryKeyConstraint("evaluation_id", "agent_id", name="pk_evaluation_agents"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "evaluation_tasks",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("item_key", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="ok", nullable=False),
        _of("evaluation_tasks", "evaluation_id", "evaluations"),
        _of("evaluation_tasks", "task_id", "tasks", None),
        sa.PrimaryKeyConstraint("evaluation_id", "task_id", name="pk_evaluation_tasks"),
    )


def _create_log() -> None:
    op.create_table(
        "evaluation_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("detail", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _of("evaluation_log", "evaluation_id", "evaluations"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation_log"),
    )
    op.create_index("ix_evaluation_log_evaluation", "evaluation_log", ["evaluation_id", "id"])


def _create_invalidations() -> None:
    op.create_table(
        "run_invalidations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.Column("revoked_by", sa.Text()),
        _project("run_invalidations"),
        _of("run_invalidations", "run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name="pk_run_invalidations"),
    )
    op.create_index("ix_run_invalidations_run", "run_invalidations", ["run_id"])
    op.create_index(
        "uq_run_invalidations_open", "run_invalidations", ["run_id"], unique=True,
        postgresql_where=sa.text("revoked_at is null"),
    )  # fmt: skip


def _create_notes() -> None:
    op.create_table(
        "run_notes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("run_notes"),
        _of("run_notes", "run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name="pk_run_notes"),
    )
    op.create_index("ix_run_notes_run", "run_notes", ["run_id", "created_at"])
    op.create_index("ix_run_notes_project", "run_notes", ["project_id", "created_at"])


def _create_scans() -> None:
    op.create_table(
        "contamination_scans",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("claimed_at", TIME, server_default=NOW, nullable=False),
        sa.Column("scanned_at", TIME),
        sa.Column("version", sa.Integer()),
        sa.Column("marks", sa.Integer()),
        sa.Column("scanned_bytes", sa.BigInteger()),
        sa.Column("cut", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("hits", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        _of("contamination_scans", "run_id", "runs"),
        sa.PrimaryKeyConstraint("run_id", name="pk_contamination_scans"),
    )
