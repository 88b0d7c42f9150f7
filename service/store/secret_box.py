"""Secrets that must be readable again (webhooks'), encrypted with a key that is a file outside the database."""

import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.domain.errors import Fault
from service.store.key_file import key_at

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
        return cls(key_at(path))

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
