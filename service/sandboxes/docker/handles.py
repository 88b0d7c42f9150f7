"""The directory of one sandbox: ``<data>/sandboxes/<id>/``, mode 0700, gone when the sandbox is.

``handle.json`` (0600) is all that another process needs to open the sandbox again; ``control/`` is what the sandbox
sees of it, read-only; the workspace's image lies beside.
"""

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.domain.limits import Limits
from service.sandboxes.contract import SandboxGone, SandboxSpec
from service.sandboxes.docker.markers import EngineMarkers

SANDBOXES = "sandboxes"
HANDLE = "handle.json"


@dataclass(frozen=True, slots=True)
class Handle:
    id: str
    spec: SandboxSpec
    container: str
    """The container's id; its name before it is created."""
    key: str
    """Hex of the launcher's key."""
    volume: str
    markers: EngineMarkers
    made_at: float
    """Unix seconds."""
    interpreter: str
    """Path of the launcher's Python inside."""
    attestation: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        spec = {
            "environment": self.spec.environment,
            "kit": self.spec.kit,
            "runtime": self.spec.runtime,
            "in_memory": self.spec.in_memory,
            "limits": self.spec.limits.model_dump(mode="json"),
            # Left out where it is the default: a worker of the version before these fields knows none.
            **({} if self.spec.confinement == "default" else {"confinement": self.spec.confinement}),
            **({"verifier": True} if self.spec.verifier else {}),
        }
        return {
            "v": 1,
            "id": self.id,
            "spec": spec,
            "container": self.container,
            "key": self.key,
            "volume": self.volume,
            "markers": self.markers.to_json(),
            "made_at": self.made_at,
            "interpreter": self.interpreter,
            "attestation": self.attestation,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Handle":
        spec: dict[str, Any] = {**raw["spec"], "limits": Limits.model_validate(raw["spec"]["limits"])}
        names = ("id", "container", "key", "volume", "made_at", "interpreter", "attestation")
        values = {n: raw[n] for n in names}
        return cls(spec=SandboxSpec(**spec), markers=EngineMarkers(**raw["markers"]), **values)


class Handles:
    """The directories of all sandboxes of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / SANDBOXES
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.shared = self.root / ".launcher"
        self.shared.mkdir(mode=0o700, exist_ok=True)

    def home(self, sandbox_id: str) -> Path:
        """Return the directory; refuses an id that is no plain name (ids come back from labels and rows)."""
        if not sandbox_id.replace("_", "").isalnum():
            raise SandboxGone("sandbox_unknown", f"no sandbox has the id {sandbox_id!r}")
        return self.root / sandbox_id

    def make_home(self, sandbox_id: str) -> Path:
        home = self.home(sandbox_id)
        home.mkdir(mode=0o700)
        return home

    def write(self, handle: Handle) -> None:
        """Store the handle durably, atomically."""
        home = self.home(handle.id)
        draft = home / f".{HANDLE}"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            json.dump(handle.to_json(), out)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(home / HANDLE)

    def read(self, sandbox_id: str) -> Handle:
        """Return the handle; raise SandboxGone if there is none (never made to its end, or destroyed)."""
        try:
            raw = json.loads((self.home(sandbox_id) / HANDLE).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError) as error:
            raise SandboxGone("sandbox_gone", f"nothing usable is left of {sandbox_id}") from error
        return Handle.from_json(raw)

    def ids(self) -> list[str]:
        return [e.name for e in os.scandir(self.root) if e.is_dir(follow_symlinks=False) and e.name[0] != "."]

    def forget(self, sandbox_id: str) -> None:
        """Remove the directory; idempotent. Mounts below it must be gone: a mounted directory is refused by rmdir."""
        home = self.home(sandbox_id)
        (home / HANDLE).unlink(missing_ok=True)
        shutil.rmtree(home, onerror=_unless_missing)


def _unless_missing(_function: Any, _path: str, info: Any) -> None:
    if not isinstance(info[1], FileNotFoundError):
        raise info[1]
