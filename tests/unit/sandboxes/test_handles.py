"""A sandbox's directory: private, complete, and gone when it is forgotten."""

from dataclasses import replace
from pathlib import Path

import pytest

from service.domain.limits import Limits
from service.sandboxes.contract import SandboxGone, SandboxSpec
from service.sandboxes.docker.handles import Handle, Handles
from service.sandboxes.docker.markers import EngineMarkers, read_markers

MARKERS = EngineMarkers("boot", "engine", "12:345", 1000.0)
HANDLE = Handle(
    "sbx_1", SandboxSpec("sha256:a", "sha256:k", Limits(pids=77), "runsc"), "c0ffee", "ab" * 32, "v", MARKERS, 12.5, "/usr/bin/python3",
    {"matched": 40},
)  # fmt: skip


def test_a_handle_comes_back_equal_and_private(tmp_path: Path) -> None:
    handles = Handles(tmp_path)
    home = handles.make_home("sbx_1")
    handles.write(HANDLE)
    assert handles.read("sbx_1") == HANDLE
    assert (home / "handle.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert handles.root.stat().st_mode & 0o777 == 0o700
    assert handles.ids() == ["sbx_1"]


def test_a_confinement_comes_back_and_a_handle_without_one_is_still_read(tmp_path: Path) -> None:
    handles = Handles(tmp_path)
    handles.make_home("sbx_1")
    desktop = replace(HANDLE, spec=replace(HANDLE.spec, confinement="desktop"))
    handles.write(desktop)
    assert handles.read("sbx_1") == desktop
    assert "confinement" not in HANDLE.to_json()["spec"], "a worker of the version before would refuse it"


def test_forget_is_idempotent(tmp_path: Path) -> None:
    handles = Handles(tmp_path)
    handles.make_home("sbx_1")
    handles.write(HANDLE)
    handles.forget("sbx_1")
    handles.forget("sbx_1")
    assert handles.ids() == []
    with pytest.raises(SandboxGone):
        handles.read("sbx_1")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "a\x00"])
def test_an_id_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SandboxGone):
        Handles(tmp_path).home(name)


def test_restarts_are_told_apart() -> None:
    assert not MARKERS.restarted_since(MARKERS)
    assert EngineMarkers("other", "engine", "12:345", 1.0).restarted_since(MARKERS)
    assert EngineMarkers("boot", "other", "12:345", 1.0).restarted_since(MARKERS)
    assert EngineMarkers("boot", "engine", "13:999", 1.0).restarted_since(MARKERS)
    assert EngineMarkers("boot", "engine", "12:999", 1.0).restarted_since(MARKERS)
    assert not EngineMarkers("boot", "engine", None, None).restarted_since(MARKERS)


def test_markers_of_an_unreachable_engine_name_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.sandboxes.docker.markers.PID_FILES", (tmp_path / "none",))
    found = read_markers(f"unix://{tmp_path}/no.sock", "E")
    assert (found.process, found.engine_id) == (None, "E")
    assert found.boot_id
