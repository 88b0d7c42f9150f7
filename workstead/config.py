"""Where the service is and what opens it: explicit values, else the environment, else the file that ``serve`` wrote."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workstead.errors import WorksteadError

CLIENT_FILE = "client.json"
"""Below the data directory, mode 0600: ``{"url": …, "token": …}``."""
DEFAULT_URL = "http://127.0.0.1:8040"


class NotConfigured(WorksteadError):
    """No server or no token is known, or the file that should tell is not trustworthy."""


@dataclass(frozen=True, slots=True)
class Connection:
    url: str
    token: str


def default_data_dir() -> Path:
    """Return the data directory that ``serve`` uses when none is named."""
    if given := os.environ.get("WORKSTEAD_DATA_DIR"):
        return Path(given)
    return Path("/var/lib/workstead") if os.geteuid() == 0 else Path.home() / ".local/share/workstead"


def resolve(url: str | None = None, token: str | None = None, data_dir: Path | None = None) -> Connection:
    """Find url and token. Raises NotConfigured in words."""
    url = url or os.environ.get("WORKSTEAD_URL")
    token = token or os.environ.get("WORKSTEAD_TOKEN")
    if token and url:
        return Connection(url, token)
    file = (data_dir or default_data_dir()) / CLIENT_FILE
    local = read_file(file)
    if local is None:
        raise NotConfigured(f"set WORKSTEAD_URL and WORKSTEAD_TOKEN, or start `workstead serve` here (no {file})")
    if url and url.rstrip("/") != local.url.rstrip("/"):
        raise NotConfigured(f"WORKSTEAD_TOKEN is not set, and the token in {file} belongs to {local.url}, not to {url}")
    return Connection(local.url, token or local.token)


def read_file(path: Path) -> Connection | None:
    """Read a client file; None where there is none. Raises NotConfigured if others could have written or read it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotConfigured(f"{path}: {error.strerror}") from error
    with os.fdopen(fd, encoding="utf-8") as file:
        info = os.fstat(file.fileno())
        if info.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(info.st_mode) & 0o077:
            raise NotConfigured(f"{path} must belong to you with mode 0600")
        return _parse(path, file.read(65_536))


def _parse(path: Path, text: str) -> Connection:
    try:
        body: Any = json.loads(text)
        return Connection(str(body["url"]), str(body["token"]))
    except (ValueError, KeyError, TypeError) as error:
        raise NotConfigured(f"{path} is not a client file") from error


def write_file(path: Path, connection: Connection) -> None:
    """Write a client file, atomically, mode 0600."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"url": connection.url, "token": connection.token}, file)
    temporary.replace(path)
