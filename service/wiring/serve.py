"""Everything on this machine, in processes that are started again when they fall."""

import argparse
import asyncio
import socket
import sys

from service import logs
from service.local_access import ensure_client_file
from service.settings import Settings
from service.store import migrate
from service.supervisor.children import ChildSpec
from service.supervisor.serve import serve as supervise


def run(_: argparse.Namespace) -> None:
    """Run everything until a signal says stop."""
    settings = Settings()
    logs.configure(settings.log_level)
    port = settings.api.port or _free_port(settings.api.host)
    url = settings.api.public_url or f"http://{settings.api.host}:{port}"
    settings.deployment_id()
    env = settings.child_environment(API__PORT=str(port), DATA_DIR=str(settings.data_dir))
    children = [ChildSpec(n, [sys.executable, "-m", "service", n], env) for n in ("api", "worker", "grader")]
    with_keys = settings.child_environment(provider_keys=True, DATA_DIR=str(settings.data_dir))
    children.insert(1, ChildSpec("gateway", [sys.executable, "-m", "service", "gateway"], with_keys))

    def prepare(database_url: str) -> None:
        migrate.upgrade(database_url)
        asyncio.run(ensure_client_file(database_url, settings.data_dir / "client.json", url))

    def ready(_: str) -> None:
        print(f"Workstead: {url} (token in {settings.data_dir / 'client.json'})", flush=True)  # noqa: T201

    given = settings.require_database_url() if settings.database_url else None
    supervise(settings.data_dir, children, prepare, given, ready)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
