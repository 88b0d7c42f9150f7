"""``python -m service <command>``: the processes of the service. ``workstead`` (the client's command) calls these."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pydantic

from service import logs, machine_check, wiring
from service.domain.errors import WorksteadError
from service.models.scripted import server as scripted
from service.models.scripted.scenario_file import load
from service.scaffolds import offline
from service.settings import Settings

_SCHEMA_DIR = Path(__file__).parents[1] / "api_schema"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m service", description="Processes of Workstead.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="everything on this machine, with an embedded PostgreSQL if no URL is set")
    commands.add_parser("api", help="HTTP API and pages")
    commands.add_parser("worker", help="runs sandboxes on this host's engine")
    commands.add_parser("gateway", help="the way out to the models of this host's runs: keys, budgets, ledger")
    commands.add_parser("grader", help="grades deliverables")
    commands.add_parser("migrate", help="bring the database's schema to this version")
    commands.add_parser("gc", help="remove blobs that nothing refers to")
    commands.add_parser("check", help="try out what this machine offers; JSON lines, for `workstead doctor`")
    scripted = commands.add_parser("scripted-provider", help="a model provider that follows a script, for tests")
    scripted.add_argument("--host", default="127.0.0.1")
    scripted.add_argument("--port", type=int, default=8765)
    scripted.add_argument("--scenario", default="success", help="for keys other than sk-scripted-<scenario>")
    scripted.add_argument("--scenarios", type=Path, help="TOML file with tables [[scenario]]")
    scaffold = commands.add_parser("scaffold", help="try a scaffold manifest, without a service")
    scaffold.add_argument("action", choices=["lint", "parse"])
    scaffold.add_argument("manifest", type=Path, help="TOML or JSON")
    scaffold.add_argument("log", type=Path, nargs="?", help="of parse: the program's standard output")
    openapi = commands.add_parser("openapi", help="write api_schema/")
    openapi.add_argument("--check", action="store_true", help="only compare; exit 1 if anything differs")
    token = commands.add_parser("token", help="make an API token; it is printed once")
    token.add_argument("action", choices=["create"])
    token.add_argument("--project", default="default")
    token.add_argument("--scope", action="append", help="repeatable; default: admin")
    token.add_argument("--note", default="")
    return parser


def _check(settings: Settings) -> list[machine_check.Tried]:
    """Try the database and each runtime of this machine; what fails is a finding, not an exception."""
    logs.configure("CRITICAL")
    worker = settings.worker
    url = settings.require_database_url() if settings.database_url else None

    async def check() -> list[machine_check.Tried]:
        found = await machine_check.try_database(url, settings.data_dir)
        return found + await machine_check.try_sandboxes(
            settings.data_dir, worker.docker_url, worker.images, worker.runtimes
        )

    return asyncio.run(check())


def _scaffold(action: str, manifest: Path, log: Path | None) -> int:
    """Print what an author wants to know; JSON lines for ``parse``. Raises ValueError, WorksteadError."""
    try:
        found = offline.read_manifest(manifest)
        if action == "lint":
            print(f"{found.name}@{found.version} is good; digest {found.digest()}")  # noqa: T201
            return 0
        if log is None:
            raise ValueError("parse needs a file with the program's output")
        for event in offline.parse_log(found, log):
            print(json.dumps(event, ensure_ascii=False))  # noqa: T201
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if args.command == "openapi":
        return wiring.openapi(_SCHEMA_DIR, only_check=args.check)
    try:
        if args.command == "scripted-provider":
            scripted.serve(args.host, args.port, load(args.scenarios) if args.scenarios else (), args.scenario)
            return 0
        if args.command == "scaffold":
            return _scaffold(args.action, args.manifest, args.log)
        settings = Settings()
        if args.command == "token":
            print(wiring.mint_token(settings, args.project, args.scope or ["admin"], args.note))  # noqa: T201
        elif args.command == "check":
            for tried in _check(settings):
                print(json.dumps(asdict(tried)))  # noqa: T201
        elif args.command == "gc":
            print(f"{wiring.collect_garbage(settings)} bytes freed")  # noqa: T201
        else:
            wiring.COMMANDS[args.command](settings)
    except (WorksteadError, ValueError, pydantic.ValidationError) as error:
        print(f"workstead {args.command}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
