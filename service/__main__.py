"""``python -m service <command>``: the processes of the service. ``workstead`` (the client's command) calls these."""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name

import pydantic

from service.domain.errors import WorksteadError

_COMMANDS = {
    "serve": "serve:run", "api": "api:run", "worker": "worker:run", "gateway": "gateway:run", "grader": "grader:run",
    "migrate": "upkeep:run_migrate", "gc": "upkeep:run_gc", "token": "upkeep:run_token", "check": "machine:run",
    "scripted-provider": "tools:run_scripted", "scaffold": "tools:run_scaffold", "openapi": "tools:run_openapi",
}  # fmt: skip
"""Command → module of ``service.wiring`` and function, which takes the arguments and returns the exit code or None."""


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


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code. Only what the command needs is loaded: a process holds no other's code."""
    args = _parser().parse_args(argv)
    try:
        return _loaded(_COMMANDS[args.command])(args) or 0
    except (WorksteadError, ValueError, pydantic.ValidationError) as error:
        print(f"workstead {args.command}: {error}", file=sys.stderr)  # noqa: T201
        return 2


def _loaded(command: str) -> Callable[[argparse.Namespace], int | None]:
    """What is loaded stays: searching it for garbage would be a tenth of the start, and a part of each later search."""
    gc.disable()
    try:
        return resolve_name(f"service.wiring.{command}")
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
