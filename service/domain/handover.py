"""What an export of results is made of, and for whom (NEEDS A20, B22)."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.domain.reports import ReportKind, ReportSettings
from service.domain.tasks import Strict

OPERATION = "export"
"""Kind of the operation that makes one."""
MOST_FINDINGS = 200
"""Findings that a refusal names; the rest is counted."""
Label = Annotated[str, Field(min_length=1, max_length=200)]


class Profile(StrEnum):
    INTERNAL = "internal"
    """Everything, what quotes hidden assets too where the caller may read it."""
    REVIEWER = "reviewer"
    """Without names of hosts and users."""
    PUBLIC = "public"
    """Also without hidden assets, without what private tasks are, agents under their aliases, none under embargo."""


Waiver = Annotated[str, Field(pattern=r"^[a-z]+:[0-9a-f]{12}$")]
"""Name of a finding of the leak scan that may leave the house: its kind and the digest of what was found."""


class ExportRequest(Strict):
    evaluation_ids: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(min_length=1, max_length=50)
    profile: Profile = Profile.INTERNAL
    waivers: list[Waiver] = Field(default_factory=list[str], max_length=1_000)
    names: list[Annotated[str, Field(min_length=4, max_length=200)]] = Field(
        default_factory=list[str], max_length=1_000
    )
    """Further words that must not leave the house, beside those that the profile leaves out."""
    aliases: dict[Label, Label] = Field(default_factory=dict[str, str], max_length=200)
    """Agent's id or label → what profile ``public`` calls it; who makes its model is then left out too."""
    embargo: list[Label] = Field(default_factory=list[str], max_length=200)
    """Ids or labels of agents that profile ``public`` leaves out altogether."""
    kind: ReportKind | None = None
    settings: ReportSettings = Field(default_factory=ReportSettings)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.evaluation_ids)) != len(self.evaluation_ids):
            raise ValueError("an evaluation is named twice")
        if len(set(self.aliases.values())) != len(self.aliases):
            raise ValueError("two agents have the same alias")
        if self.profile is not Profile.PUBLIC and (self.aliases or self.embargo):
            raise ValueError("aliases and embargo belong to the profile public")
        return self


class ExportSpec(ExportRequest):
    """The request as the operation keeps it."""

    author: str
    hidden: bool = False
    """With what quotes hidden assets: the caller may read it, and the profile is not public."""

    @model_validator(mode="after")
    def _public_is_not_hidden(self) -> Self:
        if self.hidden and self.profile is Profile.PUBLIC:
            raise ValueError("a public export quotes no hidden assets")
        return self
