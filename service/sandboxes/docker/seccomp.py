"""Which system calls a sandbox may make: allow-lists in seccomp.json, and what confinement ``desktop`` changes of it."""

import json
from pathlib import Path

from service.sandboxes.contract import Confinement


def _profile(changes: str | None = None) -> str:
    """Return the engine's form of seccomp.json; rules of the file ``changes`` replace all that name the same calls."""
    folder = Path(__file__).parent
    profile = json.loads((folder / "seccomp.json").read_text(encoding="utf-8"))
    if changes is not None:
        rules = json.loads((folder / changes).read_text(encoding="utf-8"))["syscalls"]
        changed = {name for rule in rules for name in rule["names"]}
        kept = [{**rule, "names": [n for n in rule["names"] if n not in changed]} for rule in profile["syscalls"]]
        profile["syscalls"] = [rule for rule in kept if rule["names"]] + rules
    return json.dumps(profile)


SECCOMP: dict[Confinement, str] = {"default": _profile(), "desktop": _profile("seccomp_desktop.json")}
