"""Settings of an importer: texts that a user typed, checked all at once."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workstead.task_dir import InvalidInput, read_text

S = TypeVar("S", bound="CommonSettings")
_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))*\Z")
"""As the service takes hosts that a task must not reach."""


class CommonSettings(BaseModel):
    """What every importer takes; each has further settings of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    revision: str | None = Field(default=None, max_length=128, pattern=r"^[ -~]+$")
    """Revision of the source, such as a commit."""
    uri: str = Field(default="", max_length=2_000, pattern=r"^[ -~]*$")
    """Where the source came from; no credentials."""
    notice: Path | None = None
    """File with licence, terms and citation, printed under every table."""
    deny: Path | None = None
    """File with the hosts that publish the answers, one a line."""
    canaries: Path | None = None
    """File with texts that only the benchmark contains, one a line."""
    environment: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9._/:@-]{0,254}$")
    """Image that the tasks run in."""
    wall_clock_s: float | None = Field(default=None, gt=0, le=7 * 86_400)
    """Seconds that an agent has for a task."""
    cpus: float | None = Field(default=None, ge=0.1, le=64)
    """Processors of a task's sandbox."""
    memory_bytes: int | None = Field(default=None, ge=64 << 20, le=256 << 30)
    """Memory of a task's sandbox; less than the benchmark's own makes results that do not compare."""
    disk_bytes: int | None = Field(default=None, ge=64 << 20, le=512 << 30)
    """Size of a task's workspace, at least 64 MiB: its table of files needs most of that."""

    def limits(self, default: Mapping[str, float]) -> dict[str, float]:
        """Return the limits of a task: what the user said, else the benchmark's own."""
        named = {name: getattr(self, name) for name in ("wall_clock_s", "cpus", "memory_bytes", "disk_bytes")}
        return {**default, **{name: value for name, value in named.items() if value is not None}}


def parse_settings(kind: type[S], given: Mapping[str, str]) -> S:
    """Check settings. Raises InvalidInput that names each one that is unknown or not usable."""
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        known = ", ".join(sorted(kind.model_fields))
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise InvalidInput(Path("options"), [*lines, f"known options: {known}"]) from error


def settings_help(kind: type[CommonSettings]) -> dict[str, str]:
    return {name: field.description or "" for name, field in kind.model_fields.items()}


def head_fields(settings: CommonSettings) -> dict[str, Any]:
    """Read the files that the common settings name. Raises InvalidInput, OSError."""
    notice = _text(settings.notice)
    if len(notice) > 10_000:
        raise InvalidInput(Path(str(settings.notice)), ["a notice has at most 10 000 characters"])
    return {
        "notice": notice,
        "deny_list": _lines(settings.deny, 253, r"[A-Za-z0-9_*.:-]+\Z"),
        "canaries": _lines(settings.canaries, 512, r"[^\x00\ud800-\udfff]+\Z"),
    }


def network_fields(policy: str, settings: CommonSettings) -> dict[str, Any]:
    """Return a task's network policy: with ``web`` the hosts of the deny list are out of reach. Raises InvalidInput, OSError."""
    if policy != "web":
        return {"network": policy}
    hosts = [line.lower() for line in head_fields(settings)["deny_list"]]
    if bad := [host for host in hosts if not _HOST.match(host)]:
        raise InvalidInput(Path(str(settings.deny)), [f"network=web: {host!r} is no name of a host" for host in bad])
    return {"network": policy, "deny_hosts": hosts}


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    problems: list[str] = []
    text = read_text(path, path.name, problems)
    if problems or text is None or "\0" in text:
        raise InvalidInput(path, problems or ["has a NUL"])
    return text


def _lines(path: Path | None, longest: int, allowed: str) -> list[str]:
    lines = [line.strip() for line in _text(path).splitlines()]
    kept = [line for line in lines if line and not line.startswith("#")]
    bad = [line[:80] for line in kept if len(line) > longest or not re.match(allowed, line)]
    if path is not None and (bad or len(kept) > 1_000):
        raise InvalidInput(path, [*(f"not usable: {line!r}" for line in bad[:20]), "at most 1 000 lines are allowed"])
    return kept
