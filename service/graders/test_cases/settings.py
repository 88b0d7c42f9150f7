"""Settings of method ``test_cases``."""

from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from service.domain.limits import GIB, KIB, MIB, Limits
from service.domain.paths import RelativePath
from service.domain.tasks import Strict
from service.graders.test_cases.languages import TOOLS, Language

Comparator = Literal["exact", "trim", "lenient"]
WORKSPACE_BYTES = 64 * MIB
INODES = 10_000


class TestCasesSettings(Strict):
    __test__ = False

    tests: RelativePath = "tests.json"
    """Hidden asset: the tests with their expected outputs (docs/grading-test-cases.md)."""
    language: Language = "python"
    """Of the program that ``code`` items run."""
    submission: Annotated[list[RelativePath], Field(min_length=1, max_length=8)] = Field(
        default_factory=list[RelativePath]
    )
    """Files of the deliverable that may hold the program; the first one that was delivered counts. From ``.md`` and
    ``.txt`` the program is taken out: a fenced block, else the whole text. Default: ``output/solution.<extension>``,
    ``output/answer.md``, ``output/answer.txt``."""
    answers: RelativePath = "output/answers.json"
    """File of the deliverable for ``text`` and ``choice`` items: a JSON object, item id → answer."""
    comparator: Comparator = "trim"
    environment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._/:@-]{0,254}$")] = "code_exec"
    """Image in which programs run: a shipped name, or an image id known to the host."""
    per_test_s: float = Field(default=10, ge=0.1, le=600)
    """Seconds of wall time for one test."""
    memory_bytes: int = Field(default=512 * MIB, ge=128 * MIB, le=16 * GIB)
    """For the program, the files it writes and some 20 MB of ours."""
    pids: int = Field(default=64, ge=16, le=1024)
    """Most processes and threads."""
    output_bytes: int = Field(default=MIB, ge=KIB, le=2 * MIB)
    """Most bytes that one test may write to each of its two streams."""

    @model_validator(mode="before")
    @classmethod
    def _submission(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        values = cast("dict[str, Any]", given)
        named = values.get("submission")
        if named is None:
            tool = next((t for name, t in TOOLS.items() if name == values.get("language", "python")), TOOLS["python"])
            named = [f"output/{name}" for name in (tool.file, "answer.md", "answer.txt")]
        return {**values, "submission": [named] if isinstance(named, str) else named}

    def limits(self) -> Limits:
        """Return the limits of the room: a quarter of its memory, at most 64 MiB, is its workspace."""
        return Limits(
            wall_clock_s=self.per_test_s,
            memory_bytes=self.memory_bytes,
            pids=self.pids,
            disk_bytes=min(WORKSPACE_BYTES, self.memory_bytes // 4),
            inodes=INODES,
            shm_bytes=16 * MIB,
        )
