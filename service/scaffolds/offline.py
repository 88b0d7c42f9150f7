"""What an author of a manifest can try without a service: is it good, and what would it make of a program's output?"""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pydantic

from service.domain.agents import ScaffoldManifest
from service.domain.errors import Invalid
from service.scaffolds import registry

MOST_BYTES = 256 << 20
"""Of a log, as much as a run's raw log keeps."""


def read_manifest(path: Path) -> ScaffoldManifest:
    """Read a manifest from TOML or JSON. Raises Invalid ``bad_manifest`` with every problem in words, OSError."""
    data = path.read_bytes()
    try:
        body: Any = json.loads(data) if path.suffix == ".json" else tomllib.loads(data.decode())
        manifest = ScaffoldManifest.model_validate(_with_digests(path.parent, body))
    except pydantic.ValidationError as error:
        said = [f"/{'/'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise Invalid("bad_manifest", "; ".join(said[:20]), problems=said) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise Invalid("bad_manifest", f"{path.name}: {error}") from None
    registry.check(manifest)
    return manifest


def _with_digests(folder: Path, body: Any) -> Any:
    """Return the manifest as ``scaffolds register`` sends it: an entry ``{path, source}`` of ``files`` is a file beside it.

    Raises OSError.
    """
    if not isinstance(body, dict):
        return body
    given = cast("dict[str, Any]", body)
    files = given.get("files")
    if not isinstance(files, list):
        return given
    return {**given, "files": [_with_digest(folder, entry) for entry in cast("list[Any]", files)]}


def _with_digest(folder: Path, entry: Any) -> Any:
    if not isinstance(entry, dict) or "source" not in entry:
        return cast("Any", entry)
    given = cast("dict[str, Any]", entry)
    source = folder / str(given["source"])
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    named = {"path": source.name, "sha256": digest, "size_bytes": source.stat().st_size}
    return {**named, **{name: value for name, value in given.items() if name != "source"}}


def parse_log(manifest: ScaffoldManifest, log: Path) -> Iterator[dict[str, Any]]:
    """Yield what each line of a program's standard output would become; last, what the program said of its ending.

    Raises Invalid ``nothing_to_read`` where the kind reads no lines, OSError.
    """
    parser = registry.scaffold_for(manifest.kind).line_parser(manifest)
    if parser is None:
        raise Invalid("nothing_to_read", "this manifest has no mapping: its output stays raw")
    lines = log.read_bytes()[:MOST_BYTES].split(b"\n")
    for number, line in enumerate(lines, 1):
        events = parser.line("stdout", line.removesuffix(b"\r"))
        for event in events:
            yield {"line": number, "type": event.type, "payload": dict(event.payload)}
        if not events and line:
            yield {"line": number, "type": "raw", "payload": {"text": line[:200].decode(errors="replace")}}
    said = parser.report()
    usage = None if said.usage is None else said.usage.model_dump()
    cost = None if said.cost_usd is None else str(said.cost_usd)
    report = {"status": said.status, "reason": said.reason, "text": said.text, "usage": usage, "cost_usd": cost}
    yield {"line": None, "type": "report", "payload": report}
