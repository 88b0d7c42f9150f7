"""Secrets that must be readable again (webhooks'), encrypted with a key that is a file outside the database."""

import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.domain.errors import Fault

_VERSION = b"\x01"
_NONCE = 12
_KEY = 32


class SecretUnreadable(Fault):
    """The key file is another one than the secret was encrypted with, or the row was changed by hand."""

    def __init__(self) -> None:
        super().__init__("secret_unreadable", "a stored secret does not fit the key file")


class SecretBox:
    """AES-256-GCM; each secret is bound to a context (what it belongs to), so rows cannot be exchanged."""

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY:
            raise ValueError("a key has 32 bytes")
        self._cipher = AESGCM(key)

    @classmethod
    def at(cls, path: Path) -> "SecretBox":
        """Use the key of ``path``, made at the first call. Raises ValueError in words, OSError."""
        if not path.exists():
            _make_key(path)
        if path.stat().st_mode & 0o077:
            raise ValueError(f"{path} may be read by others: chmod 600 it")
        return cls(path.read_bytes())

    def seal(self, plain: bytes, context: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return _VERSION + nonce + self._cipher.encrypt(nonce, plain, context.encode())

    def open(self, sealed: bytes, context: str) -> bytes:
        """Raises SecretUnreadable."""
        nonce, data = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        try:
            if sealed[:1] != _VERSION:
                raise SecretUnreadable
            return self._cipher.decrypt(nonce, data, context.encode())
        except (InvalidTag, ValueError) as error:
            raise SecretUnreadable from error


def _make_key(path: Path) -> None:
    """Write a new key, complete before it has its name; another process may have been first."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY))
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
