"""What ``doctor`` says of databases: real ones, good and not."""

import re
import time
from pathlib import Path

import pytest

from service import machine_check
from service.machine_check import Tried, try_database, try_sandboxes
from service.supervisor.postgres import EmbeddedPostgres


def by_name(found: list[Tried]) -> dict[str, Tried]:
    return {tried.what: tried for tried in found}


def entries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_good_one(database_url: str, tmp_path: Path) -> None:
    found = by_name(await try_database(database_url, tmp_path))
    assert (found["database"].ok, found["clock"].ok) == (True, True)


async def test_one_without_our_tables_is_a_note_with_what_to_do(empty_database_url: str, tmp_path: Path) -> None:
    (found,) = await try_database(empty_database_url, tmp_path)
    assert found.ok is None
    assert "python -m service migrate" in found.said


async def test_one_too_old_is_missing(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.migrate.MINIMUM_SERVER", 990_000)
    (found,) = await try_database(database_url, tmp_path)
    assert found.ok is False
    assert "PostgreSQL 15 or newer" in found.said


async def test_a_wrong_password_is_missing_and_never_said(database_url: str, tmp_path: Path) -> None:
    wrong = re.sub(r"//([^:]+):[^@]+@", r"//\1:not-the-one@", database_url)
    assert wrong != database_url
    (found,) = await try_database(wrong, tmp_path)
    assert found.ok is False
    assert "password right" in found.said
    assert "not-the-one" not in found.said


@pytest.mark.parametrize("off_s", [30.0, -30.0])
async def test_another_time_is_a_note(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    real = time.time
    monkeypatch.setattr(machine_check.time, "time", lambda: real() + off_s)
    found = by_name(await try_database(database_url, tmp_path))
    assert found["clock"].ok is None
    assert "NTP" in found["clock"].said


async def test_the_embedded_one_before_its_first_start(tmp_path: Path) -> None:
    (found,) = await try_database(None, tmp_path)
    assert found.ok is True
    assert "makes it at its start" in found.said


async def test_the_embedded_one_that_nobody_runs(postgres_server: EmbeddedPostgres) -> None:
    """Its files are there and no supervisor is: that is no failure."""
    (found,) = await try_database(None, postgres_server.log.parents[1])
    assert found.ok is True
    assert "it runs while" in found.said


async def test_an_engine_that_is_away_is_a_note_and_leaves_no_folder(tmp_path: Path) -> None:
    found = await try_sandboxes(tmp_path, f"unix://{tmp_path}/none.sock", {}, ["runc"])
    assert [tried.ok for tried in found] == [None]
    assert "not tried" in found[0].said
    assert entries(tmp_path) == []
