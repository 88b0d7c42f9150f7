"""What a user may say about task directories, and what is the same for all of them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workstead.importers.settings import CommonSettings

NAME, VERSION = "harbor", "1"
POLICIES = {"no_deliverable": "as_graded", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
ABSOLUTE = r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+(,(/[A-Za-z0-9][A-Za-z0-9._-]*)+)*$"
RELATIVE = r"^[A-Za-z0-9][A-Za-z0-9._/-]*(,[A-Za-z0-9][A-Za-z0-9._/-]*)*$"


class Settings(CommonSettings):
    images: Path | None = None
    """JSON file, task → image that was built of its environment (name or id); default: harbor-<task>."""
    linked: Annotated[str, Field(pattern=ABSOLUTE, max_length=1_000)] | None = None
    """Folders, parted by commas, that the images have as links: /app to /workspace/app. Tasks may work in them."""
    collect: Annotated[str, Field(pattern=RELATIVE, max_length=1_000)] | None = None
    """Folders below /workspace that are delivered, parted by commas; default: those that tests and instruction name."""
    network: Literal["declared", "none"] = "declared"
    """declared: the web, without the hosts of the deny list, unless the task forbids it; none: no task has it."""
    verifier: Literal["own", "pytest"] = "own"
    """own runs tests/test.sh; pytest runs the image's pytest on tests/ in its place, which needs no network."""

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(self.linked.split(",")) if self.linked else ()
