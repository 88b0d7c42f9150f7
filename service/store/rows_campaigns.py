"""Rows of campaigns, their items, raters, assignments and preferences."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from service.domain.campaigns import CampaignSpec, CampaignState, Form
from service.domain.ratings import Purpose
from service.store.rows import Converters, Json, Row


@dataclass(frozen=True, slots=True)
class CampaignRow(Row):
    id: str
    project_id: str
    name: str
    form: Form
    state: CampaignState
    spec: CampaignSpec
    """As it was at first: instruction, name, labels and due date have columns of their own."""
    instruction: str
    instruction_version: int
    instruction_sha256: str
    labels: dict[str, str]
    items: int
    decided: int
    short: list[Json]
    author: str
    revision: int
    created_at: datetime
    updated_at: datetime | None
    due_at: datetime | None
    opened_at: datetime | None
    closed_at: datetime | None
    CONVERT: ClassVar[Converters] = {
        "form": Form,
        "state": CampaignState,
        "spec": CampaignSpec.model_validate,
    }


@dataclass(frozen=True, slots=True)
class ItemRow(Row):
    id: str
    project_id: str
    campaign_id: str
    position: int
    task_id: str
    run_id: str
    other_run_id: str | None
    """Form pairwise; null there: the human reference."""
    categories: list[str]
    gold: Json | None
    audited: bool
    want: Purpose | None
    wanted: int
    verdict: Json | None
    grading_id: str | None
    identifying: list[Json] | None
    """Names of agents, models … found in what raters see; null: nobody has looked."""
    created_at: datetime
    decided_at: datetime | None
    CONVERT: ClassVar[Converters] = {"want": Purpose}


@dataclass(frozen=True, slots=True)
class RaterRow(Row):
    id: str
    project_id: str
    campaign_id: str
    name: str
    pseudonym: str
    categories: list[str]
    judge: Json | None
    token_id: str | None
    state: str
    """invited | active | removed"""
    qualified: bool | None
    invitation_expires_at: datetime | None
    """Null: there is none that could still be used."""
    created_at: datetime
    joined_at: datetime | None
    removed_at: datetime | None


@dataclass(frozen=True, slots=True)
class AssignmentRow(Row):
    """An item as it is (or was) with one rater; submitted: the rating."""

    id: str
    project_id: str
    campaign_id: str
    item_id: str
    rater_id: str
    purpose: Purpose
    state: str
    """leased | submitted | skipped | released"""
    swapped: bool
    """The item's second is shown as A."""
    leased_until: datetime | None
    started_at: datetime
    active_s: float
    wall_s: float
    """Of leases that ended, in seconds."""
    rating: Json | None
    rating_digest: str | None
    client_id: str | None
    reason: str | None
    instruction_version: int | None
    instruction_sha256: str | None
    created_at: datetime
    submitted_at: datetime | None
    CONVERT: ClassVar[Converters] = {"purpose": Purpose}


@dataclass(frozen=True, slots=True)
class PreferenceRow(Row):
    id: str
    project_id: str
    campaign_id: str
    item_id: str
    task_id: str
    first_run_id: str
    second_run_id: str | None
    """Null: the human reference."""
    first_agent_id: str
    second_agent_id: str | None
    value: float
    choices: list[str]
    combination: str
    created_at: datetime
