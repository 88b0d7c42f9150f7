"""What a user may say about JobBench, and what its tasks have in common."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workstead.importers.settings import CommonSettings

NAME, VERSION = "jobbench", "2"
MADE = "rubrics.json"
"""Hidden file with the rubrics in one form."""
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 4.0, "memory_bytes": 8 << 30, "disk_bytes": 20 << 30}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
GRADER_WANTED = {"grader_wanted": "rubric_chain"}


class Settings(CommonSettings):
    categories: Path | None = None
    """JSON file, occupation → category; makes the facet and the table's columns."""
    judge: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model of the catalogue that judges by the rubrics."""
    network: Literal["web", "none"] = "web"
    """web, as the benchmark wants it, without the hosts of the deny list; or none, whose results do not compare."""
    pins: Path | None = None
    """JSON file {"version": 1, "repo_id", "revision", "files": {path: sha256}}: a file that differs costs its task."""
    files: Path | None = None
    """Folder with the reference files of a parquet source; default: the folder that the parquet file is in."""

    @property
    def labels(self) -> dict[str, str]:
        return {} if self.judge is not None else GRADER_WANTED

    @property
    def graders(self) -> list[dict[str, Any]]:
        if self.judge is None:
            return []
        return [{"method": "rubric_chain", "settings": {"rubrics": MADE, "judges": [{"model": self.judge}]}}]
