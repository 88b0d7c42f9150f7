"""The service that an evaluation is on: the configured one, else this machine's own, for as long as the command takes."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from workstead.cli.service_process import LocalService, answers
from workstead.cli.watch import note
from workstead.config import Connection, NotConfigured, default_data_dir, resolve

CLUSTER = "pg"
"""Folder of the data directory that is there once a service has run here."""


@contextmanager
def service(*, begins: bool = False) -> Generator[Connection]:
    """Give a running service; one of our own stops at the end, and its data stays.

    ``begins``: the command may be the first that this machine ever sees; others only start what was here before. Raises
    NotConfigured, ServiceFailed.
    """
    there = _there()
    if there is not None:
        yield there
        return
    data_dir = default_data_dir()
    if not begins and not (data_dir / CLUSTER).exists():
        raise NotConfigured(
            f"set WORKSTEAD_URL and WORKSTEAD_TOKEN, or start `workstead serve` here (nothing in {data_dir})"
        )
    with tempfile.NamedTemporaryFile(prefix="workstead-service-", suffix=".log", delete=False) as log:
        path = Path(log.name)
    note(f"no service is configured: starting one here, with its data in {data_dir} and its log in {path}")
    with LocalService(data_dir, path) as running:
        yield running.connection
        note("stopping the service; what is under way goes on with the next one")


def _there() -> Connection | None:
    """Return what is configured; of a local file only if somebody answers there."""
    if os.environ.get("WORKSTEAD_URL") or os.environ.get("WORKSTEAD_TOKEN"):
        return resolve()
    try:
        found = resolve()
    except NotConfigured:
        return None
    return found if answers(found) else None
