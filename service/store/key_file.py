"""A random key of 32 bytes in a file of its own, readable by its owner alone."""

import os
import secrets
from pathlib import Path

KEY_BYTES = 32


def key_at(path: Path) -> bytes:
    """Return the key of ``path``, made at the first call. Raises ValueError in words, OSError."""
    if not path.exists():
        _make_key(path)
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} may be read by others: chmod 600 it")
    return path.read_bytes()


def _make_key(path: Path) -> None:
    """Write a new key, complete before it has its name; another process may have been first."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
