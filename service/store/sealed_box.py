"""Secrets that one process may write and only another may read: X25519, HKDF-SHA256, AES-256-GCM.

The API seals with the gateway's public key and keeps nothing that could open it; each secret has an ephemeral key of
its own and is bound to a context (what it belongs to), so rows cannot be exchanged.
"""

import hashlib
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from service.domain.errors import Fault
from service.store.key_file import key_at

_VERSION = b"\x01"
_KEY = 32
_NONCE = bytes(12)  # the key encrypts a single message


class CredentialUnreadable(Fault):
    """Sealed for another gateway key, or the row was changed by hand."""

    def __init__(self) -> None:
        super().__init__("credential_unreadable", "a stored credential does not fit the gateway's key: bring it again")


def seal(public_key: bytes, plain: bytes, context: str) -> bytes:
    """Return what only the holder of the private key can read. Raises ValueError for what is no public key."""
    ephemeral = X25519PrivateKey.generate()
    own = _raw(ephemeral.public_key())
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public_key))
    return _VERSION + own + _cipher(shared, own, public_key).encrypt(_NONCE, plain, context.encode())


class OpeningKey:
    """The private key of a gateway."""

    def __init__(self, private: bytes) -> None:
        """Raises ValueError unless ``private`` has 32 bytes."""
        self._private = X25519PrivateKey.from_private_bytes(private)
        self.public = _raw(self._private.public_key())

    @property
    def id(self) -> str:
        return f"seal_{hashlib.sha256(self.public).hexdigest()[:26]}"

    @classmethod
    def at(cls, path: Path) -> "OpeningKey":
        """Use the key of ``path``, made at the first call. Raises ValueError in words, OSError."""
        return cls(key_at(path))

    def open(self, sealed: bytes, context: str) -> bytes:
        """Raises CredentialUnreadable."""
        version, other, data = sealed[:1], sealed[1 : 1 + _KEY], sealed[1 + _KEY :]
        try:
            if version != _VERSION:
                raise CredentialUnreadable
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(other))
            return _cipher(shared, other, self.public).decrypt(_NONCE, data, context.encode())
        except (InvalidTag, ValueError) as error:
            raise CredentialUnreadable from error


def _raw(public: X25519PublicKey) -> bytes:
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _cipher(shared: bytes, ephemeral: bytes, recipient: bytes) -> AESGCM:
    info = b"workstead credential" + ephemeral + recipient
    return AESGCM(HKDF(hashes.SHA256(), _KEY, salt=None, info=info).derive(shared))
