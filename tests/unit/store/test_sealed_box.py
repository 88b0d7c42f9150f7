"""Sealed credentials: only the gateway's key opens them, each in its own place."""

import stat
from pathlib import Path

import pytest

from service.store.sealed_box import CredentialUnreadable, OpeningKey, seal


def test_only_the_holder_of_the_key_reads_it(tmp_path: Path) -> None:
    key, other = OpeningKey.at(tmp_path / "a" / "seal.key"), OpeningKey.at(tmp_path / "b" / "seal.key")
    sealed = seal(key.public, b"sk-secret", "cred_1")
    assert b"secret" not in sealed
    assert sealed != seal(key.public, b"sk-secret", "cred_1")
    assert key.open(sealed, "cred_1") == b"sk-secret"
    with pytest.raises(CredentialUnreadable):
        other.open(sealed, "cred_1")
    with pytest.raises(CredentialUnreadable):
        key.open(sealed, "cred_2")


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    key = OpeningKey.at(tmp_path / "seal.key")
    sealed = seal(key.public, b"sk-secret", "cred_1")
    for place in range(len(sealed)):
        with pytest.raises(CredentialUnreadable):
            key.open(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :], "cred_1")
    for length in (0, 1, 32, 33, 40):
        with pytest.raises(CredentialUnreadable):
            key.open(sealed[:length], "cred_1")


def test_the_key_file_is_kept_and_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "gateway" / "seal.key"
    first = OpeningKey.at(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert OpeningKey.at(path).id == first.id
    path.chmod(0o644)
    with pytest.raises(ValueError, match="chmod"):
        OpeningKey.at(path)
