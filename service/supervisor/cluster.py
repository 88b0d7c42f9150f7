"""The files of the embedded database: cluster, password, socket directory. No process outlives a call here."""

import os
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import Fault
from service.supervisor.account import Account
from service.supervisor.binaries import Binaries
from service.supervisor.locks import sync_directory, write_whole
from service.supervisor.proc import die_with_parent

SUPERUSER = "workstead"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_PORT = 5432
_SOCKET_PATH_LIMIT = 107  # sun_path without its final zero
_INITDB_TIMEOUT_S = 120


class PostgresFailed(Fault):
    """The embedded database could not be made or started; ``detail`` holds the end of what it printed."""

    def __init__(self, detail: str) -> None:
        super().__init__("postgres_failed", detail)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Places below one data directory (an absolute path without links)."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "pg"

    @property
    def password_file(self) -> Path:
        return self.root / "pg-password"

    @property
    def socket_record(self) -> Path:
        return self.root / "pg-socket-dir"

    @property
    def server_record(self) -> Path:
        return self.root / "pg-server.json"

    @property
    def log(self) -> Path:
        return self.root / "log" / "postgres.log"

    def major(self) -> int | None:
        """Major version that made the cluster; ``None`` when there is none yet."""
        try:
            return int((self.data / "PG_VERSION").read_text())
        except FileNotFoundError:
            return None

    def password(self) -> str:
        return self.password_file.read_text().strip()

    def socket_dir(self) -> Path:
        return Path(self.socket_record.read_text().strip())


def create(cluster: Cluster, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Make the cluster with ``initdb`` beside its place and rename it there; a half-made one is thrown away."""
    temporary = cluster.root / "pg.new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700)
    os.chown(temporary, account.uid, account.gid)
    write_whole(cluster.password_file, f"{secrets.token_urlsafe(32)}\n".encode(), uid=account.uid, durable=durable)
    options = [f"--pgdata={temporary}", f"--username={SUPERUSER}", f"--pwfile={cluster.password_file}"]
    options += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"]
    # code point order and Unicode case rules that no upgrade of the C library changes
    options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options += [] if durable else ["--no-sync"]
    process = spawn([str(binaries.bin / "initdb"), *options], account, cluster.root, subprocess.PIPE, signal.SIGKILL)
    try:
        output, _ = process.communicate(timeout=_INITDB_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise PostgresFailed(f"initdb did not end within {_INITDB_TIMEOUT_S} s") from None
    if process.returncode != 0:
        raise PostgresFailed(f"initdb failed: {output[-2000:].decode(errors='replace')}")
    temporary.rename(cluster.data)
    if durable:
        sync_directory(cluster.root)


def spawn(
    argv: list[str], account: Account, cwd: Path, output: int, parent_death_signal: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start a program as the account, in a session of its own, with stderr joined to ``output``."""
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=account.uid if account.switch else None,
        group=account.gid if account.switch else None,
        extra_groups=[] if account.switch else None,
        umask=0o077,
        preexec_fn=die_with_parent(parent_death_signal),  # noqa: PLW1509  # one prctl; no lock is taken
    )


def prepare_socket_dir(cluster: Cluster, account: Account, runtime_dir: Path) -> Path:
    """Return an empty directory (the account's) whose socket path fits, recorded for those who connect.

    Where the data directory's path does not do, it is made below ``runtime_dir`` with a random name. One that is
    recorded is used again: children that are running were told of it.
    """
    if directory := _recorded_socket_dir(cluster, account):
        _empty(directory)
        return directory
    directory = cluster.root / "pg-socket"
    too_long = len(os.fsencode(directory / f".s.PGSQL.{_PORT}")) > _SOCKET_PATH_LIMIT
    if too_long or "," in str(directory):  # clients take a comma for the end of one host of several
        directory = Path(tempfile.mkdtemp(prefix="workstead-pg-", dir=runtime_dir))
    else:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
    os.chown(directory, account.uid, account.gid)
    directory.chmod(_socket_dir_mode(account))
    write_whole(cluster.socket_record, f"{directory}\n".encode())
    return directory


def remove_socket_dir(cluster: Cluster, account: Account) -> None:
    if directory := _recorded_socket_dir(cluster, account):
        _empty(directory)
        directory.rmdir()
    cluster.socket_record.unlink(missing_ok=True)


def _recorded_socket_dir(cluster: Cluster, account: Account) -> Path | None:
    """Return it only if nobody else can have made it: after a reboot its name may be somebody's in /tmp."""
    try:
        directory = cluster.socket_dir()
        info = directory.lstat()
    except FileNotFoundError:
        return None
    mode = _socket_dir_mode(account)
    private = stat.S_ISDIR(info.st_mode) and stat.S_IMODE(info.st_mode) == mode and info.st_uid == account.uid
    return directory if private and directory.is_absolute() else None


def _socket_dir_mode(account: Account) -> int:
    """The server's group is the way in for the one process of ours that is neither root nor the server's user."""
    return 0o710 if account.switch else 0o700


def _empty(directory: Path) -> None:
    for name in (f".s.PGSQL.{_PORT}", f".s.PGSQL.{_PORT}.lock"):
        (directory / name).unlink(missing_ok=True)
