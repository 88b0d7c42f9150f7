"""The paths below /workspace that an instruction names, against those that are there."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PATH = re.compile(r"/workspace/([\w.()&+ -]*[\w)](?:/[\w.()&+ -]*[\w)])*)")


def missing_paths(manifest: Mapping[str, Any]) -> list[str]:
    """Return the paths that an instruction names and that neither exist nor are to be delivered, each once."""
    refs: list[Mapping[str, Any]] = manifest.get("visible") or []
    visible = {str(ref["path"]) for ref in refs}
    there = visible | {parent for path in visible for parent in _parents(path)}
    roots = tuple(str(root) for root in manifest.get("collect") or ["output"])
    named = dict.fromkeys(m[1].rstrip(".") for m in _PATH.finditer(str(manifest.get("instruction", ""))))
    return [name for name in named if not _known(name, there) and not any(_within(name, root) for root in roots)]


def _known(name: str, there: set[str]) -> bool:
    # A sentence goes on after a path, and blanks are allowed in names: what begins with a known path is that path.
    return any(name == path or name.startswith((f"{path} ", f"{path}. ")) for path in there)


def _within(name: str, root: str) -> bool:
    return bool(re.match(rf"{re.escape(root)}(?:$|[/ ]|\. )", name))


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path
