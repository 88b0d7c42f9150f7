"""What this machine offers the service, tried out and said in words: the half of ``workstead doctor`` that needs us.

Nothing here changes what a running service has: sandboxes are made under a deployment of their own, and are gone.
"""

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import WorksteadError
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.selftest import RuntimeCheck
from service.store import clock, migrate
from service.store.database import Database
from service.supervisor import binaries
from service.supervisor.postgres import EmbeddedPostgres
from service.supervisor.status import read_status

MOST_SKEW_S = 2.0
"""Leases are kept by the database's clock, durations by a monotonic one; beyond this, times shown to people differ."""


@dataclass(frozen=True, slots=True)
class Tried:
    what: str
    ok: bool | None
    """None: it works with a restriction, or could not be tried."""
    said: str


async def try_database(url: str | None, data_dir: Path) -> list[Tried]:
    """Say whether the database answers, is new enough, migrated and of the same time; ``None`` is the embedded one."""
    if url is None:
        return await _embedded(data_dir)
    return await _server("the PostgreSQL of WORKSTEAD_DATABASE_URL", url)


async def _embedded(data_dir: Path) -> list[Tried]:
    try:
        name = f"embedded PostgreSQL {(await asyncio.to_thread(binaries.packaged)).version}"
    except WorksteadError as error:
        return [Tried("database", False, f"{error}; install it (`make setup`) or set WORKSTEAD_DATABASE_URL")]
    try:
        url = EmbeddedPostgres(data_dir).url
    except OSError:
        return [Tried("database", True, f"{name}; `workstead serve` makes it at its start")]
    if read_status(data_dir) is None:
        return [Tried("database", True, f"{name}; it runs while `workstead serve` does")]
    return await _server(name, url)


async def _server(name: str, url: str) -> list[Tried]:
    try:
        await asyncio.to_thread(migrate.check, url)
    except migrate.SchemaMismatch as error:
        advice = (
            " (`workstead serve` or `python -m service migrate` does it)" if error.type == "schema_mismatch" else ""
        )
        return [Tried("database", None if advice else False, f"{name} answers; {error}{advice}")]
    except (WorksteadError, ValueError) as error:
        return [Tried("database", False, f"{name}: {error}; is it running, and are address and password right?")]
    return [Tried("database", True, f"{name} answers and is at this version's revision"), await _skew(url)]


async def _skew(url: str) -> Tried:
    db = Database(url, pool_size=1)
    try:
        before = time.time()
        async with db.reading() as tx:
            theirs = (await clock.now(tx)).timestamp()
        off = theirs - (before + time.time()) / 2
    except WorksteadError as error:
        return Tried("clock", None, f"the database's time could not be read: {error}")
    finally:
        await db.close()
    if abs(off) <= MOST_SKEW_S:
        return Tried("clock", True, f"{abs(off):.1f} s between this machine and the database")
    return Tried("clock", None, f"the database's clock is {off:+.1f} s off this machine's: set both by NTP")


async def try_sandboxes(
    data_dir: Path, docker_url: str | None, images: Mapping[str, str], runtimes: Sequence[str]
) -> list[Tried]:
    """Make a sandbox with each runtime, plant a listener in it and reach it from inside; say which quota there is."""
    folder = await asyncio.to_thread(_new_folder, data_dir)
    try:
        backend = DockerBackend(folder, f"doctor{secrets.token_hex(4)}", docker_url, images, runtimes=runtimes)
        try:
            return await _tried(backend, runtimes)
        finally:
            await backend.close()
    except WorksteadError as error:
        return [Tried("self-test", None, f"not tried: {error}")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder(data_dir: Path) -> Path:
    """Return a folder on the file system that the service will use, if that can be written to already."""
    near = data_dir if os.access(data_dir, os.W_OK) else Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="doctor-", dir=near))
    folder.chmod(0o711)
    return folder


async def _tried(backend: DockerBackend, runtimes: Sequence[str]) -> list[Tried]:
    kind, soft = await backend.workspace_kind()
    checks = [await backend.check(name) for name in runtimes]
    some = any(check.offered for check in checks)
    return [
        _quota(kind, soft),
        *(_runtime(check, some) for check in checks),
        _untrusted(await backend.untrusted_runtimes()),
    ]


def _quota(kind: str, soft: bool) -> Tried:
    if not soft:
        return Tried("quota", True, f"{kind}: the kernel stops a workspace at its limit")
    said = f"{kind}: a workspace over its limit is noticed and stopped, not prevented; untrusted projects are refused"
    return Tried("quota", None, f"{said} (hard quotas need root and loop devices)")


def _runtime(check: RuntimeCheck, some: bool) -> Tried:
    if check.offered:
        return Tried(f"runtime {check.runtime}", True, f"self-test passed: {check.reason}")
    return Tried(f"runtime {check.runtime}", None if some else False, f"not offered: {check.reason}")


def _untrusted(names: Sequence[str]) -> Tried:
    if names:
        return Tried("untrusted work", True, f"may run with {', '.join(names)}")
    said = "refused here: it needs gVisor (or a runc at or above the floor) and a hard quota"
    return Tried("untrusted work", None, said)
