"""The office program's server with a driver of the test's making: one question at a time, and never the same after a death."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.evidence.extraction.inside import office_server
from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.office import Office
from tests.unit.evidence.extraction_rig import CAPS


def drive(asked: int, tell: int, profile: Path) -> None:
    """Do what the name of the document says; write which instance did it."""
    if (profile.parent / "never").exists():
        return
    os.write(tell, b"up\n")
    with os.fdopen(asked, "rb") as questions:
        for line in questions:
            question = json.loads(line)
            word = Path(question["path"]).name
            if word == "hang":
                time.sleep(60)
            if word == "die":
                return
            if word == "babble":
                os.write(tell, b"\xff no answer\n")
                continue
            if word == "locked":
                os.write(tell, b'{"error": "encrypted", "detail": "a password"}\n')
                continue
            Path(question["target"]).write_text(profile.name)
            os.write(tell, b'{"done": true}\n')
            if word == "last words":
                return


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.setattr(office_server, "drive", drive)
    monkeypatch.setattr(office_server, "CONVERT_S", 1.0)
    made = Office(tmp_path / "office")
    yield made
    made.close()


def convert(office: Office, folder: Path, name: str, seconds: float = 30) -> str:
    scratch = folder / f"scratch-{name.replace('/', '-')}"
    scratch.mkdir(exist_ok=True)
    return office.convert(
        folder / name, "pdf", Output("docx", "docx", scratch, CAPS, None, time.monotonic() + seconds)
    ).read_text()


def test_what_a_document_does_to_the_program_costs_that_document_only(office: Office, tmp_path: Path) -> None:
    office.start()
    assert convert(office, tmp_path, "a") == convert(office, tmp_path, "b") == "profile1"
    instance = 1
    # One that ends the program does so twice: the first time it could have been another's doing.
    for name, error, many in (("hang", "timeout", 1), ("die", "cannot_open", 2), ("babble", "cannot_open", 2)):
        with pytest.raises(Failed) as failed:
            convert(office, tmp_path, name)
        instance += many
        assert (failed.value.error, convert(office, tmp_path, "c")) == (error, f"profile{instance}")
    with pytest.raises(Failed) as failed:
        convert(office, tmp_path, "locked")
    assert (failed.value.error, convert(office, tmp_path, "d")) == ("encrypted", f"profile{instance}")


def test_those_that_wait_behind_a_document_that_hangs_get_their_turn(office: Office, tmp_path: Path) -> None:
    office.start()
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(convert(office, tmp_path, "hang"))
        except Failed as failed:
            found.append(failed.error)

    hanging = threading.Thread(target=ask)
    hanging.start()
    found.append(convert(office, tmp_path, "a"))
    hanging.join(30)
    assert min(found).startswith("profile")
    assert "timeout" in found


def test_a_program_that_does_not_start_is_said_to_be_away(office: Office, tmp_path: Path) -> None:
    (tmp_path / "office").mkdir()
    (tmp_path / "office" / "never").touch()
    office.start()
    for _ in range(2):
        with pytest.raises(Failed, match="does not start") as failed:
            convert(office, tmp_path, "a")
        assert failed.value.error == "office_unavailable"


def test_it_is_not_started_for_ever(office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office_server, "MOST_STARTS", 2)
    office.start()
    errors: list[str] = []
    for number in range(4):
        with pytest.raises(Failed) as failed:
            convert(office, tmp_path, f"{number}/die")
        errors.append(failed.value.error)
    assert errors == ["cannot_open", *["office_unavailable"] * 3]


def test_a_document_that_it_did_not_manage_is_not_put_before_it_again(office: Office, tmp_path: Path) -> None:
    office.start()
    for _ in range(3):
        with pytest.raises(Failed, match="did not survive it"):
            convert(office, tmp_path, "die")
    assert convert(office, tmp_path, "a") == "profile3"


def test_a_document_does_not_pay_for_the_one_before_it(office: Office, tmp_path: Path) -> None:
    office.start()
    assert convert(office, tmp_path, "last words") == "profile1"
    assert convert(office, tmp_path, "a") == "profile2"


def test_whoever_waits_too_long_leaves_and_an_end_ends_all(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office_server, "CONVERT_S", 20.0)
    office.start()
    with pytest.raises(Failed) as failed:
        convert(office, tmp_path, "hang", seconds=1)
    assert failed.value.error == "timeout"
    office.close()
    with pytest.raises(Failed) as failed:
        convert(office, tmp_path, "a")
    assert failed.value.error == "office_unavailable"
