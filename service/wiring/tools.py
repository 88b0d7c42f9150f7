"""What needs no running service: the schema's files, a manifest's trial, a model provider that follows a script."""

import argparse
import json
import sys
from pathlib import Path

from service.api import schema
from service.models.scripted import server as scripted
from service.models.scripted.scenario_file import load
from service.scaffolds import offline

_SCHEMA_DIR = Path(__file__).parents[2] / "api_schema"


def run_openapi(args: argparse.Namespace) -> int:
    """Write ``api_schema/``, or say which files differ from what the code would write (exit code 1)."""
    if not args.check:
        schema.dump(_SCHEMA_DIR)
        return 0
    stale = schema.check(_SCHEMA_DIR)
    for line in stale:
        print(line, file=sys.stderr)  # noqa: T201
    return 1 if stale else 0


def run_scripted(args: argparse.Namespace) -> None:
    scripted.serve(args.host, args.port, load(args.scenarios) if args.scenarios else (), args.scenario)


def run_scaffold(args: argparse.Namespace) -> None:
    """Print what an author wants to know; JSON lines for ``parse``. Raises ValueError, WorksteadError."""
    try:
        found = offline.read_manifest(args.manifest)
        if args.action == "lint":
            print(f"{found.name}@{found.version} is good; digest {found.digest()}")  # noqa: T201
            return
        if args.log is None:
            raise ValueError("parse needs a file with the program's output")
        for event in offline.parse_log(found, args.log):
            print(json.dumps(event, ensure_ascii=False))  # noqa: T201
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
