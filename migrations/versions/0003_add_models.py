"""Create models, credentials, services, the ledger of model requests, breakers, leases, images, conformance."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
DOUBLE = sa.Double[float]()
NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    _add_columns()
    _create_sealing_keys()
    _create_breakers()
    _create_client_facts()
    _create_credentials()
    _create_images()
    _create_models()
    _create_services()
    _create_conformance_results()
    _create_leases()
    _create_model_requests()
    _create_service_calls()
    _create_traced_runs()


def downgrade() -> None:
    op.drop_column("scaffolds", "conformance")
    op.drop_column("scaffolds", "deprecated")
    op.drop_column("runs", "kit")
    op.drop_column("runs", "provider_wait_s")
    op.drop_column("runs", "service_cost_usd")
    op.drop_column("runs", "service_calls")
    op.drop_column("runs", "cost_usd_all_attempts")
    op.drop_column("runs", "price_date")
    op.drop_column("runs", "cost_basis")
    op.drop_column("runs", "cost_usd")
    op.drop_column("runs", "reasoning_tokens")
    op.drop_column("runs", "output_tokens")
    op.drop_column("runs", "cache_write_tokens")
    op.drop_column("runs", "cached_input_tokens")
    op.drop_column("runs", "input_tokens")
    op.drop_column("runs", "requests")
    op.drop_column("runs", "keep_on_failure_s")
    op.drop_column("runs", "replay_of")
    op.drop_column("runs", "provider_tools")
    op.drop_column("runs", "network")
    op.drop_column("runs", "budget")
    op.drop_column("runs", "model_id")
    op.drop_column("runs", "driver")
    op.drop_column("attempts", "provenance")
    op.drop_table("traced_runs")
    op.drop_index("ix_service_calls_open", table_name="service_calls")
    op.drop_table("service_calls")
    op.drop_index("ix_model_requests_open", table_name="model_requests")
    op.drop_index("ix_model_requests_run", table_name="model_requests")
    op.drop_index("ix_model_requests_project", table_name="model_requests")
    op.drop_table("model_requests")
    op.drop_table("leases")
    op.drop_table("conformance_results")
    op.drop_table("client_facts")
    op.drop_table("services")
    op.drop_table("models")
    op.drop_table("images")
    op.drop_index("ix_credentials_project", table_name="credentials")
    op.drop_table("credentials")
    op.drop_table("breakers")
    op.drop_table("sealing_keys")


def _add_columns() -> None:
    op.add_column("attempts", sa.Column("provenance", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.add_column("runs", sa.Column("driver", sa.Text(), server_default="kit", nullable=False))
    op.add_column("runs", sa.Column("model_id", sa.Text()))
    op.add_column("runs", sa.Column("budget", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.add_column("runs", sa.Column("network", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.add_column("runs", sa.Column("provider_tools", sa.Text(), server_default="deny", nullable=False))
    op.add_column("runs", sa.Column("replay_of", sa.Text()))
    op.add_column("runs", sa.Column("keep_on_failure_s", DOUBLE, server_default="0", nullable=False))
    op.add_column("runs", sa.Column("kit", sa.Text()))
    op.add_column("runs", sa.Column("requests", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("cached_input_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("cache_write_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("reasoning_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("cost_usd", sa.Numeric(precision=20, scale=10)))
    op.add_column("runs", sa.Column("cost_basis", sa.Text()))
    op.add_column("runs", sa.Column("price_date", sa.Date()))
    op.add_column("runs", sa.Column("cost_usd_all_attempts", sa.Numeric(precision=20, scale=10)))
    op.add_column("runs", sa.Column("service_calls", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("service_cost_usd", sa.Numeric(precision=20, scale=10)))
    op.add_column("runs", sa.Column("provider_wait_s", DOUBLE, server_default="0", nullable=False))
    op.add_column("scaffolds", sa.Column("deprecated", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("scaffolds", sa.Column("conformance", JSONB()))


def _create_sealing_keys() -> None:
    op.create_table(
        "sealing_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sealing_keys"),
    )


def _create_breakers() -> None:
    op.create_table(
        "breakers",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.Text(), server_default="", nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("manual", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("concurrency", sa.Integer()),
        sa.Column("opened_at", TIME),
        sa.Column("next_probe_at", TIME),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_breakers_project_id_projects"),
        sa.PrimaryKeyConstraint("provider", "model_id", "credential_id", name="pk_breakers"),
    )


def _create_credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("replaced_at", TIME),
        sa.ForeignKeyConstraint(["key_id"], ["sealing_keys.id"], name="fk_credentials_key_id_sealing_keys"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_credentials_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
    )
    op.create_index("ix_credentials_project", "credentials", ["project_id"], unique=False)


def _create_images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text()),
        sa.Column("archive", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("content", JSONB()),
        sa.Column("report", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("credential_id", sa.Text()),
        sa.Column("operation_id", sa.Text()),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_images_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
        sa.UniqueConstraint("project_id", "name", name="uq_images_project_id"),
    )


def _create_models() -> None:
    op.create_table(
        "models",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("credential_id", sa.Text()),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("checked_at", TIME),
        sa.Column("check_result", JSONB()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_models_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("project_id", "name", name="uq_models_project_id"),
    )


def _create_services() -> None:
    op.create_table(
        "services",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("credential_id", sa.Text()),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_services_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("project_id", "name", name="uq_services_project_id"),
    )


def _create_client_facts() -> None:
    op.create_table(
        "client_facts",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("reported_model", sa.Text()),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("template_sha256", sa.Text(), nullable=False),
        sa.Column("prompt_sha256", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("usage", JSONB()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_client_facts_project_id_projects"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_client_facts_task_id_tasks"),
        sa.PrimaryKeyConstraint("task_id", name="pk_client_facts"),
    )


def _create_conformance_results() -> None:
    op.create_table(
        "conformance_results",
        sa.Column("scaffold_id", sa.Text(), nullable=False),
        sa.Column("case_name", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("detail", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_conformance_results_project_id_projects"),
        sa.ForeignKeyConstraint(["scaffold_id"], ["scaffolds.id"], name="fk_conformance_results_scaffold_id_scaffolds"),
        sa.PrimaryKeyConstraint("scaffold_id", "case_name", name="pk_conformance_results"),
    )


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text()),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("beat_at", TIME),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.Column("finish", JSONB()),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_leases_project_id_projects"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_leases_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_leases"),
    )


def _create_model_requests() -> None:
    op.create_table(
        "model_requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text()),
        sa.Column("attempt", sa.Integer()),
        sa.Column("n", sa.Integer()),
        sa.Column("purpose", sa.Text(), server_default="agent", nullable=False),
        sa.Column("gateway_id", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="started", nullable=False),
        sa.Column("model_id", sa.Text()),
        sa.Column("provider", sa.Text()),
        sa.Column("dialect", sa.Text()),
        sa.Column("route", sa.Text(), server_default="", nullable=False),
        sa.Column("requested_model", sa.Text()),
        sa.Column("reported_model", sa.Text()),
        sa.Column("provider_request_id", sa.Text()),
        sa.Column("streaming", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("provider_error", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="1", nullable=False),
        sa.Column("usage_known", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached_input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reasoning_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_usd", sa.Numeric(precision=20, scale=10)),
        sa.Column("cost_usd", sa.Numeric(precision=20, scale=10)),
        sa.Column("cost_basis", sa.Text(), server_default="unknown", nullable=False),
        sa.Column("price_date", sa.Date()),
        sa.Column("server_tools", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("finish_reason", sa.Text()),
        sa.Column("first_token_s", DOUBLE),
        sa.Column("total_s", DOUBLE),
        sa.Column("wait_s", DOUBLE, server_default="0", nullable=False),
        sa.Column("request_blob", sa.Text()),
        sa.Column("response_blob", sa.Text()),
        sa.Column("cassette", JSONB()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("finished_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_model_requests_project_id_projects"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_model_requests_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_model_requests"),
    )
    op.create_index("ix_model_requests_project", "model_requests", ["project_id", "created_at"], unique=False)
    op.create_index("ix_model_requests_run", "model_requests", ["run_id", "n"], unique=False)
    op.create_index(
        "ix_model_requests_open",
        "model_requests",
        ["gateway_id"],
        unique=False,
        postgresql_where=sa.text("state = 'started'"),
    )


def _create_service_calls() -> None:
    op.create_table(
        "service_calls",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("gateway_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="started", nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("units", sa.Numeric(precision=20, scale=6)),
        sa.Column("cost_usd", sa.Numeric(precision=20, scale=10)),
        sa.Column("price_date", sa.Date()),
        sa.Column("seconds", DOUBLE),
        sa.Column("request_blob", sa.Text()),
        sa.Column("response_blob", sa.Text()),
        sa.Column("cassette", JSONB),
        sa.Column("replay_of_n", sa.Integer()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("finished_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_service_calls_project_id_projects"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_service_calls_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_service_calls"),
        sa.UniqueConstraint("run_id", "n", name="uq_service_calls_run_id"),
    )
    op.create_index(
        "ix_service_calls_open",
        "service_calls",
        ["gateway_id"],
        unique=False,
        postgresql_where=sa.text("state = 'started'"),
    )


def _create_traced_runs() -> None:
    op.create_table(
        "traced_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("claimed_at", TIME, server_default=NOW, nullable=False),
        sa.Column("traced_at", TIME),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_traced_runs_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_traced_runs"),
    )
