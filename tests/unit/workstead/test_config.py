"""Which server and which token; nobody else's file is believed."""

from pathlib import Path

import pytest

from workstead.config import Connection, NotConfigured, read_file, resolve, write_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.json"
    write_file(path, Connection("http://127.0.0.1:1", "wst_local"))
    return path


def test_a_written_file_is_private_and_read_back(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_file(file) == Connection("http://127.0.0.1:1", "wst_local")


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604])
def test_a_file_that_others_may_touch_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(NotConfigured, match="0600"):
        read_file(file)


def test_a_link_is_not_followed(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    with pytest.raises(NotConfigured):
        read_file(link)


@pytest.mark.parametrize("text", ["", "[]", '{"url": "x"}', "\x00"])
def test_nonsense_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(NotConfigured):
        read_file(file)


def test_environment_before_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(data_dir=file.parent).token == "wst_local"
    monkeypatch.setenv("WORKSTEAD_URL", "http://far")
    monkeypatch.setenv("WORKSTEAD_TOKEN", "wst_far")
    assert resolve(data_dir=file.parent) == Connection("http://far", "wst_far")
    assert resolve("http://near", "t") == Connection("http://near", "t")


def test_the_local_token_is_never_sent_to_another_server(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEAD_URL", "http://far")
    with pytest.raises(NotConfigured, match="belongs to"):
        resolve(data_dir=file.parent)


def test_without_anything_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="workstead serve"):
        resolve(data_dir=tmp_path)
