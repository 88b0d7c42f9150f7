"""Which service a command of ``eval`` is on: the configured one, else one of this machine's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from workstead.cli.eval import service as module
from workstead.cli.eval.service import CLUSTER, service
from workstead.config import CLIENT_FILE, Connection, NotConfigured, write_file

OWN = Connection("http://own", "wst_own")


class Local:
    """Stands in for the process of ``workstead serve``."""

    started: ClassVar[list[Path]] = []
    stopped: ClassVar[int] = 0

    def __init__(self, data_dir: Path, log: Path) -> None:
        self.connection = OWN
        self._data_dir = data_dir
        log.unlink()

    def __enter__(self) -> Self:
        Local.started.append(self._data_dir)
        return self

    def __exit__(self, *_: object) -> None:
        Local.stopped += 1


def answering(yes: bool) -> Callable[[Connection], bool]:
    return lambda there: yes and bool(there.url)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "LocalService", Local)
    monkeypatch.setattr(module, "answers", answering(yes=True))
    monkeypatch.setenv("WORKSTEAD_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(Local, "started", list[Path]())
    monkeypatch.setattr(Local, "stopped", 0)
    return tmp_path


def test_what_is_configured_is_used_whether_it_answers_or_not(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEAD_URL", "http://there")
    monkeypatch.setenv("WORKSTEAD_TOKEN", "wst_there")
    monkeypatch.setattr(module, "answers", answering(yes=False))
    with service(begins=True) as there:
        assert there == Connection("http://there", "wst_there")
    assert (Local.started, data_dir.is_dir()) == ([], True)


def test_half_a_configuration_is_no_reason_to_start_one(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEAD_URL", "http://there")
    with pytest.raises(NotConfigured), service(begins=True):
        pytest.fail(f"no token is known in {data_dir}")
    assert Local.started == []


@pytest.mark.parametrize("answer", [True, False])
def test_a_service_that_runs_here_is_used_one_that_does_not_is_started(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    here = Connection("http://here", "wst_here")
    write_file(data_dir / CLIENT_FILE, here)
    monkeypatch.setattr(module, "answers", answering(answer))
    with service(begins=True) as there:
        assert there == (here if answer else OWN)
        assert Local.stopped == 0
    assert (Local.started, Local.stopped) == (([], 0) if answer else ([data_dir], 1))


def test_looking_does_not_set_up_what_was_never_here(data_dir: Path) -> None:
    with pytest.raises(NotConfigured, match="nothing in"), service():
        pytest.fail("there is none")
    (data_dir / CLUSTER).mkdir()
    with service() as there:
        assert there == OWN


def test_it_is_stopped_when_the_command_fails(data_dir: Path) -> None:
    def work() -> Any:
        with service(begins=True):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert (Local.started, Local.stopped) == ([data_dir], 1)
