"""Which users the database server and the gateway run as, and whether they can reach the data directory."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import Invalid, Unavailable
from service.supervisor.proc import keeping_death_signal, pause

SYSTEM_USER = "workstead-pg"
GATEWAY_USER = "workstead-gateway"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int
    switch: bool
    """Whether a process of ours has to change its uid to run as this one."""


def server_account() -> Account:
    """Return who runs the server: ourselves, or as root the system user (made when missing; it cannot log in)."""
    return system_account(SYSTEM_USER)


def system_account(name: str) -> Account:
    """Return ourselves, or as root the system user ``name``, made when missing; it cannot log in.

    Raises Unavailable("system_user_missing").
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switch=False)
    entry = _lookup(name) or _create(name)
    return Account(entry.pw_uid, entry.pw_gid, switch=True)


def become(account: Account) -> None:
    """Give up root for good and go on as ``account``, who keeps one right: to reach the embedded database's socket.

    The tie of our life to our parent's stays (the kernel would forget it).
    """
    if not account.switch:
        return
    server = _lookup(SYSTEM_USER)
    with keeping_death_signal():
        os.setgroups([] if server is None else [server.pw_gid])
        os.setgid(account.gid)
        os.setuid(account.uid)


def _lookup(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _create(name: str) -> pwd.struct_passwd:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise Unavailable("system_user_missing", f"there is no user {name} and no useradd to make it with")
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    command = [program, *options, "--shell", "/usr/sbin/nologin", name]
    message = ""
    for _ in range(_TRIES):  # another process may hold the lock of the password file, or make the same user
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        message = done.stderr.strip()
        if entry := _lookup(name):
            return entry
        pause(0.25)
    raise Unavailable("system_user_missing", f"useradd {name} failed: {message}")


def require_plain(path: Path) -> None:
    """Raise :class:`Invalid` (``data_dir_name``): ``initdb`` puts its own path into a shell's command line."""
    if odd := sorted(set(str(path)) & set('"$`\\\n')):
        raise Invalid("data_dir_name", f"PostgreSQL cannot live in {path}: its name holds {' '.join(map(repr, odd))}")


def require_reachable(path: Path, account: Account, name: str = SYSTEM_USER, what: str = "the database server") -> None:
    """Raise :class:`Invalid` (``data_dir_unreachable``) naming the directory that the account cannot enter.

    We do not open it: modes of directories that others made are theirs.
    """
    if not account.switch:
        return
    for directory in (*reversed(path.parents), path):
        info = directory.stat()
        bit = 0o100 if info.st_uid == account.uid else 0o010 if info.st_gid == account.gid else 0o001
        if not info.st_mode & bit:
            detail = (
                f"{what} runs as user {name}, who cannot enter {directory} "
                f"(mode {info.st_mode & 0o7777:04o}). Choose a data directory outside it, or allow it: "
                f"chmod o+x {directory}"
            )
            raise Invalid("data_dir_unreachable", detail, directory=str(directory))
