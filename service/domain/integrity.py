"""The integrity report: whether each delivered file opens as what it claims to be. What it says is data, not a grade."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

VERSION = "1"
"""Of what makes reports; raised whenever the same files could get another report."""
MAX_FILES = 1000
"""Files of one deliverable that are looked at; the rest is counted."""
MAX_PROBLEMS = 8
MAX_DETAIL = 300

Count = Annotated[int, Field(ge=0, le=1 << 53)]
Word = Annotated[str, Field(max_length=64)]


class ProblemType(StrEnum):
    EMPTY = "empty"
    TRUNCATED = "truncated"
    TYPE_MISMATCH = "type_mismatch"
    """The name claims another type than the content has."""
    CANNOT_OPEN = "cannot_open"
    MALFORMED = "malformed"
    """It opens, and a part of it is not sound (a table with ragged rows, say)."""
    ENCRYPTED = "encrypted"
    BOMB = "bomb"
    """Made to take more memory or time than any reader has: floods of pixels, of members, of entities, of nesting."""
    TIMEOUT = "timeout"
    """Its reader did not end, or took more memory, than one file gets."""
    TOO_LARGE_TO_CHECK = "too_large_to_check"
    CHECKER_FAILED = "checker_failed"


NOT_THE_FILES = frozenset({ProblemType.TOO_LARGE_TO_CHECK, ProblemType.CHECKER_FAILED})
"""Limits and failures of ours: they are said, and count as nobody's problem."""


class ReportState(StrEnum):
    PENDING = "pending"
    READY = "ready"
    UNAVAILABLE = "unavailable"
    """It could not be made (``cause``); asking for it makes it later. Grading goes on without it."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Problem(_Said):
    type: ProblemType
    detail: str = Field(default="", max_length=MAX_DETAIL)
    """In words, for people. May quote the file."""


class Facts(_Said):
    """What was seen in a file; null where it does not apply or was not to be had."""

    pages: Count | None = None
    sheets: Count | None = None
    slides: Count | None = None
    rows: Count | None = None
    columns: Count | None = None
    entries: Count | None = None
    """Members of an archive, elements of an array, keys of an object, tables of a database."""
    unpacked_bytes: Count | None = None
    width: Count | None = None
    """In pixels."""
    height: Count | None = None
    """In pixels."""
    frames: Count | None = None
    duration_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    video_codec: Word | None = None
    audio_codec: Word | None = None
    encoding: Word | None = None


class FileReport(_Said):
    path: str
    """As in the list of artifacts."""
    size_bytes: Count
    claims: Word | None = None
    """The name's extension in lower case; null where it has none."""
    sniffed: Word | None = None
    """What the content is, by signature: ``pdf``, ``xlsx``, ``png`` …; null where unknown."""
    opens: bool | None = None
    """Null: nobody looked, since no reader is here for it or it is too large."""
    problems: tuple[Problem, ...] = Field(default=(), max_length=MAX_PROBLEMS)
    facts: Facts = Field(default_factory=Facts)

    @property
    def faulty(self) -> bool:
        """Whether something is wrong with the file, as opposed to with our looking at it."""
        return any(p.type not in NOT_THE_FILES for p in self.problems)


class IntegrityReport(_Said):
    """Of one deliverable, by its digest."""

    version: Word = VERSION
    files: tuple[FileReport, ...] = Field(default=(), max_length=MAX_FILES)
    """In the order of the manifest."""
    not_listed: Count = 0
    """Files beyond the first ones, which nobody looked at."""

    @property
    def problems(self) -> int:
        """Number of files with which something is wrong."""
        return sum(f.faulty for f in self.files)

    def by_path(self) -> dict[str, FileReport]:
        return {f.path: f for f in self.files}
