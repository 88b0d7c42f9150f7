"""A pinned revision: the digest that each published file has, by its path in the repository."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import Loose, complaints
from workstead.importers.untrusted import read_json
from workstead.task_dir import InvalidInput

MAX_BYTES = 16 << 20
MAX_TOLD = 100


class _File(Loose):
    version: Literal[1]
    repo_id: Annotated[str, Field(max_length=256)] = ""
    revision: Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]
    files: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]]


@dataclass(slots=True)
class Pins:
    """Checks files as they are read. Without a file of pins everything passes."""

    files: Mapping[str, str] | None = None
    revision: str | None = None
    seen: set[str] = field(default_factory=set[str])

    def check(self, path: str, sha256: str, draft: Draft) -> None:
        """Quarantine the item if its file is not the pinned one; ``path`` is the one in the repository."""
        if self.files is None:
            return
        self.seen.add(path)
        if path not in self.files:
            draft.note("not_pinned", path, "the pinned revision has no such file")
        elif self.files[path] != sha256:
            draft.quarantine("digest_differs", path, f"has sha256 {sha256}, the pinned one is {self.files[path]}")

    def unseen(self, within: tuple[str, ...]) -> Iterator[str]:
        """Yield a note on each pinned file below ``within`` that the source does not have."""
        missing = sorted(p for p in set(self.files or ()) - self.seen if p.startswith(within))
        yield from (f"{path}: is pinned and was not read" for path in missing[:MAX_TOLD])
        if len(missing) > MAX_TOLD:
            yield f"{len(missing) - MAX_TOLD} more pinned files were not read"


def read_pins(path: Path | None, revision: str | None) -> Pins:
    """Read pins; ``revision`` is what the user said. Raises InvalidInput, OSError."""
    if path is None:
        return Pins()
    try:
        found = _File.model_validate(read_json(path, MAX_BYTES))
    except ValidationError as error:
        raise InvalidInput(path, [f"{where or '/'}: {what}" for where, what in complaints(error)]) from error
    if revision not in (None, found.revision):
        raise InvalidInput(path, [f"pins revision {found.revision}; option revision says {revision}"])
    return Pins(found.files, found.revision)
