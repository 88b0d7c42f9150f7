"""What campaigns of raters answer."""

from datetime import datetime
from typing import Any

from pydantic import Field

from workstead.models import Model


class Campaign(Model):
    id: str
    name: str = ""
    form: str = ""
    state: str = "draft"
    instruction: str = ""
    instruction_version: int = 1
    spec: dict[str, Any] = Field(default_factory=dict[str, Any])
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    items: int = 0
    decided: int = 0
    short: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Pairs of agents with fewer tasks than wanted."""
    revision: int = 1
    created_at: datetime | None = None
    due_at: datetime | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None
    progress: dict[str, Any] | None = None
    """The lead's figures; null in lists."""


class CampaignRater(Model):
    id: str
    name: str = ""
    pseudonym: str = ""
    kind: str = "person"
    categories: list[str] = Field(default_factory=list[str])
    state: str = "invited"
    qualified: bool | None = None
    invitation_expires_at: datetime | None = None
    joined_at: datetime | None = None
    removed_at: datetime | None = None
    code: str | None = Field(default=None, repr=False)
    """Only in the answer that makes the invitation."""
    link: str | None = Field(default=None, repr=False)
    handed_back: int | None = None
    """Only in the answer that removes the rater."""


class CampaignItem(Model):
    id: str
    position: int = 0
    task_id: str = ""
    run_id: str = ""
    other_run_id: str | None = None
    categories: list[str] = Field(default_factory=list[str])
    audited: bool = False
    want: str | None = None
    wanted: int = 0
    verdict: dict[str, Any] | None = None
    grading_id: str | None = None
    identifying: list[dict[str, Any]] | None = None
    """Names of agents, models … in what raters see; null: nobody has looked."""


class Rating(Model):
    id: str
    item_id: str = ""
    run_id: str = ""
    other_run_id: str | None = None
    rater: str = ""
    """Pseudonym."""
    rater_removed: bool = False
    purpose: str = "rating"
    state: str = ""
    rating: dict[str, Any] | None = None
    reason: str | None = None
    instruction_version: int | None = None
    active_s: float = 0.0
    wall_s: float = 0.0
    leased_until: datetime | None = None
    submitted_at: datetime | None = None


class Preference(Model):
    id: str
    task_id: str = ""
    first_run_id: str = ""
    second_run_id: str | None = None
    first_agent_id: str = ""
    second_agent_id: str | None = None
    """Null: the human reference."""
    value: float = 0.5
    """What it gives the first: 1, 0.5 or 0."""
    choices: list[str] = Field(default_factory=list[str])
    combination: str = ""


class RatedItem(Model):
    """An item in a rater's hands: nothing in it says whose work it is."""

    id: str
    state: str = "leased"
    form: str = ""
    brief: str = ""
    note: str | None = None
    sides: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    images: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    soft_limit_s: float = 0.0
    leased_until: datetime | None = None
    active_s: float = 0.0
    wall_s: float = 0.0
    rating: dict[str, Any] | None = None
    submitted_at: datetime | None = None
