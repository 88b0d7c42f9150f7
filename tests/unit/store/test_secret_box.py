"""Sealed secrets: bound to what they belong to, unreadable without the key file."""

import threading
from pathlib import Path

import pytest

from service.store.secret_box import SecretBox, SecretUnreadable


def test_what_is_sealed_can_be_opened_in_its_place_only() -> None:
    box = SecretBox(bytes(32))
    sealed = box.seal(b"secret", "webhook a")
    assert b"secret" not in sealed
    assert box.seal(b"secret", "webhook a") != sealed
    assert box.open(sealed, "webhook a") == b"secret"
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for value, context in (
        (sealed, "webhook b"),
        (changed, "webhook a"),
        (b"", "webhook a"),
        (b"\x02" + sealed[1:], "webhook a"),
    ):
        with pytest.raises(SecretUnreadable):
            box.open(value, context)
    with pytest.raises(SecretUnreadable):
        SecretBox(bytes([1]) * 32).open(sealed, "webhook a")


def test_the_key_file_is_made_once_and_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "webhooks.key"
    found: list[bytes] = []

    def use() -> None:
        found.append(SecretBox.at(path).seal(b"secret", "x"))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in path.parent.iterdir()] == ["webhooks.key"]
    assert {SecretBox.at(path).open(sealed, "x") for sealed in found} == {b"secret"}
    assert len(found) == 8
    path.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        SecretBox.at(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="32 bytes"):
        SecretBox.at(path)
