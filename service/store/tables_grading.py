"""Tables of grading: plans, votes, evidence documents, what people say against verdicts, regrades, probes of judges."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import DOUBLE, created, metadata, project, time

grading_plans = Table(
    "grading_plans", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),  # of the spec
    Column("spec", JSONB, nullable=False),
    Column("author", Text, nullable=False),  # API token
    created(),
    UniqueConstraint("project_id", "name", "version", name="uq_grading_plans_version"),
)  # fmt: skip

votes = Table(
    "votes", metadata,
    Column("grading_id", Text, ForeignKey("gradings.id", ondelete="CASCADE"), nullable=False),
    Column("judge", Text, nullable=False),  # key of the judge
    Column("item", Text, nullable=False),  # within the grading; empty: the whole
    Column("n", Integer, nullable=False),
    project(),
    Column("state", Text, nullable=False),  # VoteState
    Column("content", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("cause", Text),
    Column("asks", Integer, nullable=False, server_default="1"),
    Column("model", Text),  # as the provider reports it
    Column("template", Text, nullable=False, server_default=""),
    Column("template_sha256", Text), Column("rendered_sha256", Text),
    Column("usage", JSONB),
    Column("took_s", DOUBLE),
    created(),
    PrimaryKeyConstraint("grading_id", "judge", "item", "n"),
)  # fmt: skip

evidence_documents = Table(
    "evidence_documents", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("digest", Text, nullable=False),  # of the deliverable
    Column("version", Text, nullable=False),  # of what makes it
    Column("state", Text, nullable=False, server_default="pending"),  # EvidenceState
    Column("queued", Boolean, nullable=False, server_default=text("false")),  # a job must make it: no grading will
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("cause", Text),  # of unavailable
    Column("sha256", Text), Column("size_bytes", BigInteger),  # of the document's blob
    Column("files", Integer), Column("failed_files", Integer), Column("omitted_chars", BigInteger),
    Column("took_s", DOUBLE),
    created(), time("made_at"),
    UniqueConstraint("project_id", "digest", "version", name="uq_evidence_documents_once"),
    Index("ix_evidence_documents_queued", "created_at", postgresql_where=text("queued")),
)  # fmt: skip

verdict_reviews = Table(
    "verdict_reviews", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("grading_id", Text, ForeignKey("gradings.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),  # contest | override
    Column("author", Text, nullable=False),  # API token, or what it says for whom
    Column("reason", Text, nullable=False),
    Column("score", DOUBLE), Column("max_score", DOUBLE),  # of an override
    created(), time("withdrawn_at"),
    Index("ix_verdict_reviews_grading", "grading_id"),
    Index("ix_verdict_reviews_run", "run_id"),
)  # fmt: skip

regrades = Table(
    "regrades", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("plan", Text, nullable=False),  # name@version
    Column("spec", JSONB, nullable=False),  # filter, sample, whether it becomes the primary plan
    Column("state", Text, nullable=False),  # draft | sampling | sampled | running | done | cancelled
    Column("estimate", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("comparison", JSONB),  # of the sample with the present plan, once it is graded
    Column("round", Integer, nullable=False, server_default="1"),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    Column("author", Text, nullable=False),
    created(), time("started_at"), time("ended_at"),
    Index("ix_regrades_open", "created_at", postgresql_where=text("state in ('sampling', 'running')")),
)  # fmt: skip

regrade_runs = Table(
    "regrade_runs", metadata,
    Column("regrade_id", Text, ForeignKey("regrades.id", ondelete="CASCADE"), nullable=False),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("sampled", Boolean, nullable=False, server_default=text("false")),
    Column("step", Text, nullable=False, server_default="waiting"),  # waiting | queued | adopted | left_out
    Column("before_plan", Text, nullable=False), Column("before", DOUBLE),  # the run's plan and fraction when it was drawn up
    PrimaryKeyConstraint("regrade_id", "run_id"),
)  # fmt: skip

judge_probes = Table(
    "judge_probes", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("operation_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("plan", Text),  # name@version that it is attached to
    Column("report", JSONB, nullable=False),
    created(),
    UniqueConstraint("operation_id", name="uq_judge_probes_operation"),
)  # fmt: skip

judge_probe_outcomes = Table(
    "judge_probe_outcomes", metadata,
    Column("operation_id", Text, ForeignKey("operations.id", ondelete="CASCADE"), nullable=False),
    Column("run_id", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("outcome", JSONB, nullable=False),  # fraction, answers, cause, what the judge calls itself
    created(),
    PrimaryKeyConstraint("operation_id", "run_id", "condition"),
)  # fmt: skip
