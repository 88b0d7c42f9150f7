"""Evidence documents as the API answers them. All text in them comes from agents."""

from datetime import datetime

from pydantic import Field

from workstead.models import Model


class EvidenceOmitted(Model):
    """What was left out, counted."""

    chars: int = 0
    rows: int = 0
    parts: int = 0
    images: int = 0


class EvidencePart(Model):
    """A piece of a file's text, in the file's order."""

    kind: str
    """text | code | table | sheet | page | slide | formulas | differences | hidden | metadata | …"""
    label: str = ""
    text: str = ""


class EvidenceImage(Model):
    label: str
    source: str
    """file | page | embedded | output | frame"""
    sha256: str
    media_type: str
    width: int
    height: int
    size_bytes: int


class EvidenceFile(Model):
    path: str
    sha256: str
    size_bytes: int
    kind: str
    state: str
    """extracted | listed | failed | …"""
    error: str | None = None
    detail: str | None = None
    parts: list[EvidencePart] = Field(default_factory=list[EvidencePart])
    images: list[EvidenceImage] = Field(default_factory=list[EvidenceImage])
    omitted: EvidenceOmitted = Field(default_factory=EvidenceOmitted)
    notes: list[str] = Field(default_factory=list[str])
    facts: dict[str, str | int | float | bool] = Field(default_factory=dict[str, str | int | float | bool])


class Evidence(Model):
    """What a run's deliverable says."""

    run_id: str
    state: str
    """pending | ready | unavailable | …"""
    cause: str | None = None
    digest: str | None = None
    version: str | None = None
    took_s: float | None = None
    made_at: datetime | None = None
    files: list[EvidenceFile] = Field(default_factory=list[EvidenceFile])
    not_listed: int = 0
    skipped: list[tuple[str, str]] = Field(default_factory=list[tuple[str, str]])
    omitted: EvidenceOmitted = Field(default_factory=EvidenceOmitted)
