"""Tables of campaigns: items, raters with their browser sessions, assignments with the ratings, preferences."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from service.store.tables import DOUBLE, created, metadata, project, time

campaigns = Table(
    "campaigns", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("form", Text, nullable=False),  # Form
    Column("state", Text, nullable=False, server_default="draft"),  # CampaignState
    Column("spec", JSONB, nullable=False),  # CampaignSpec as it was at first
    Column("instruction", Text, nullable=False),
    Column("instruction_version", Integer, nullable=False, server_default="1"),
    Column("instruction_sha256", Text, nullable=False),  # blob
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("items", Integer, nullable=False),
    Column("decided", Integer, nullable=False, server_default="0"),
    Column("short", JSONB, nullable=False, server_default=text("'[]'::jsonb")),  # pairs with fewer tasks than wanted
    Column("author", Text, nullable=False),  # API token
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(),
    time("updated_at"), time("due_at"), time("opened_at"), time("closed_at"),
    Index("ix_campaigns_project", "project_id", "created_at"),
)  # fmt: skip

campaign_items = Table(
    "campaign_items", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("campaign_id", Text, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    # Form pairwise; null there: the human reference.
    Column("other_run_id", Text, ForeignKey("runs.id", ondelete="CASCADE")),
    Column("categories", ARRAY(Text), nullable=False),
    Column("gold", JSONB(none_as_null=True)),  # the right answer; null: an item proper
    Column("audited", Boolean, nullable=False, server_default=text("false")),
    Column("want", Text),  # Purpose of the ratings that are asked for
    Column("wanted", Integer, nullable=False, server_default="0"),  # how many of them in all
    Column("verdict", JSONB(none_as_null=True)),  # null: not decided
    Column("grading_id", Text),
    Column("identifying", JSONB(none_as_null=True)),  # names found in what raters see; null: nobody has looked
    created(), time("decided_at"),
    UniqueConstraint("campaign_id", "position", name="uq_campaign_items_position"),
    Index("ix_campaign_items_run", "run_id"),
    Index("ix_campaign_items_other_run", "other_run_id"),
)  # fmt: skip

raters = Table(
    "raters", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("campaign_id", Text, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("pseudonym", Text, nullable=False),
    Column("categories", ARRAY(Text), nullable=False),
    Column("judge", JSONB(none_as_null=True)),  # JudgeSpec
    Column("token_id", Text),
    Column("state", Text, nullable=False, server_default="invited"),  # invited | active | removed
    Column("qualified", Boolean),  # null: not decided, or nothing to decide
    Column("invitation_hash", LargeBinary),
    time("invitation_expires_at"),
    created(), time("joined_at"), time("removed_at"),
    UniqueConstraint("campaign_id", "pseudonym", name="uq_raters_pseudonym"),
    UniqueConstraint("invitation_hash", name="uq_raters_invitation"),
    Index("ix_raters_token", "token_id"),
)  # fmt: skip

rater_sessions = Table(
    "rater_sessions", metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("rater_id", Text, ForeignKey("raters.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)  # fmt: skip

rating_assignments = Table(
    "rating_assignments", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("campaign_id", Text, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Text, ForeignKey("campaign_items.id", ondelete="CASCADE"), nullable=False),
    Column("rater_id", Text, ForeignKey("raters.id", ondelete="CASCADE"), nullable=False),
    Column("purpose", Text, nullable=False),  # Purpose
    Column("state", Text, nullable=False),  # leased | submitted | skipped | released
    Column("swapped", Boolean, nullable=False, server_default=text("false")),  # the item's second is shown as A
    time("leased_until"),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("active_s", DOUBLE, nullable=False, server_default="0"),
    Column("wall_s", DOUBLE, nullable=False, server_default="0"),  # of leases that ended
    Column("rating", JSONB(none_as_null=True)),  # PanelRating or PairOpinion
    Column("rating_digest", Text),  # of what was sent
    Column("client_id", Text),
    Column("reason", Text),  # of a skip
    Column("instruction_version", Integer),
    Column("instruction_sha256", Text),
    created(), time("submitted_at"),
    UniqueConstraint("item_id", "rater_id", name="uq_rating_assignments_once"),
    Index("ix_rating_assignments_campaign", "campaign_id", "state"),
    Index("ix_rating_assignments_rater", "rater_id"),
)  # fmt: skip

preferences = Table(
    "preferences", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("campaign_id", Text, ForeignKey("campaigns.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Text, ForeignKey("campaign_items.id", ondelete="CASCADE"), nullable=False),
    Column("task_id", Text, nullable=False),
    Column("first_run_id", Text, nullable=False),
    Column("second_run_id", Text),  # null: the human reference
    Column("first_agent_id", Text, nullable=False),
    Column("second_agent_id", Text),
    Column("value", DOUBLE, nullable=False),  # what it gives the first: 1, 0.5 or 0
    Column("choices", JSONB, nullable=False),
    Column("combination", Text, nullable=False),  # Combination, or `rule` where one of them delivered nothing
    created(),
    UniqueConstraint("item_id", name="uq_preferences_item"),
    Index("ix_preferences_campaign", "campaign_id"),
)  # fmt: skip
