"""Trying out what this machine offers, for ``workstead doctor``."""

import argparse
import asyncio
import json
from dataclasses import asdict

from service import logs, machine_check
from service.settings import Settings


def run(_: argparse.Namespace) -> None:
    """Try the database and each runtime of this machine, a JSON line each; what fails is a finding, not an exception."""
    logs.configure("CRITICAL")
    settings = Settings()
    worker = settings.worker
    url = settings.require_database_url() if settings.database_url else None

    async def check() -> list[machine_check.Tried]:
        found = await machine_check.try_database(url, settings.data_dir)
        return found + await machine_check.try_sandboxes(
            settings.data_dir, worker.docker_url, worker.images, worker.runtimes
        )

    for tried in asyncio.run(check()):
        print(json.dumps(asdict(tried)))  # noqa: T201
