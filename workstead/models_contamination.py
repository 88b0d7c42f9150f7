"""What the contamination guard found of a run."""

from datetime import datetime

from pydantic import Field

from workstead.models import Model


class ContaminationHit(Model):
    kind: str
    """canary | shingle (a stretch of a hidden file) | file (a hidden file, byte for byte)"""
    source: str | None = None
    """The hidden file; None for a canary, and without the scope ``hidden:read``."""
    where: str
    """Untrusted text."""
    excerpt: str | None = None


class Contamination(Model):
    """Whether a run met its own answer key. Nothing found is no proof."""

    run_id: str
    state: str
    """pending | scanned"""
    scanned_at: datetime | None = None
    version: int | None = None
    marks: int | None = None
    """What was looked for; 0: the task has nothing hidden that could be found."""
    scanned_bytes: int | None = None
    cut: bool = False
    """Not everything could be looked at."""
    hits: list[ContaminationHit] = Field(default_factory=list[ContaminationHit])
