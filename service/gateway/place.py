"""The gateway's directory: sockets, keys, the lock. Made by whoever starts it, before it gives up root."""

import fcntl
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import Conflict
from service.gateway.control import bind

CONTROL, OWN, TOKEN, KEY = "control.sock", "models.sock", "service-token", "seal.key"


@dataclass(frozen=True, slots=True)
class Place:
    """What a gateway process holds open for its life."""

    directory: Path
    control: socket.socket
    own: socket.socket
    service_token: str
    _lock: int

    @classmethod
    def take(cls, directory: Path, owner: tuple[int, int] | None) -> "Place":
        """Lock the directory and bind its sockets. ``owner`` (uid, gid): who will run the gateway, if not ourselves.

        Raises Conflict("gateway_running") when another process has it, OSError.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise Conflict("gateway_running", f"another gateway has {directory}") from None
        token = service_token(directory)
        if owner is not None:
            # Not the files in it: the keys are read before root is given up, and never again.
            os.chown(directory, *owner)
        return cls(directory, bind(directory / CONTROL), bind(directory / OWN), token, lock)

    def close(self) -> None:
        self.control.close()
        self.own.close()
        os.close(self._lock)


def service_token(directory: Path) -> str:
    """Return the token of our own processes, made at the first call. Raises OSError."""
    path = directory / TOKEN
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    draft = path.with_name(f".{TOKEN}-{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
