"""Which user the database server runs as, and whether that user can reach the data directory."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import Invalid, Unavailable
from service.supervisor.proc import pause

SYSTEM_USER = "workstead-pg"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int
    switch: bool
    """Whether a process of ours has to change its uid to run as this one."""


def server_account() -> Account:
    """Return who runs the server: ourselves, or as root the system user (made when missing; it cannot log in)."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switch=False)
    entry = _lookup() or _create()
    return Account(entry.pw_uid, entry.pw_gid, switch=True)


def _lookup() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _create() -> pwd.struct_passwd:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise Unavailable("postgres_user_missing", f"there is no user {SYSTEM_USER} and no useradd to make it with")
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    command = [program, *options, "--shell", "/usr/sbin/nologin", SYSTEM_USER]
    message = ""
    for _ in range(_TRIES):  # another process may hold the lock of the password file, or make the same user
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        message = done.stderr.strip()
        if entry := _lookup():
            return entry
        pause(0.25)
    raise Unavailable("postgres_user_missing", f"useradd {SYSTEM_USER} failed: {message}")


def require_plain(path: Path) -> None:
    """Raise :class:`Invalid` (``data_dir_name``): ``initdb`` puts its own path into a shell's command line."""
    if odd := sorted(set(str(path)) & set('"$`\\\n')):
        raise Invalid("data_dir_name", f"PostgreSQL cannot live in {path}: its name holds {' '.join(map(repr, odd))}")


def require_reachable(path: Path, account: Account) -> None:
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
                f"the database server runs as user {SYSTEM_USER}, who cannot enter {directory} "
                f"(mode {info.st_mode & 0o7777:04o}). Choose a data directory outside it, or allow it: "
                f"chmod o+x {directory}"
            )
            raise Invalid("data_dir_unreachable", detail, directory=str(directory))
