"""The end of everything in a sandbox."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from service.sandboxes.docker import launcher

INSIDE = Path(launcher.__path__[0])
"""Its modules know each other by plain names, as they lie beside each other in a sandbox."""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    found = importlib.import_module("launcher_process")
    monkeypatch.setattr(found, "may_sweep", lambda: True)
    return found


def test_a_sweep_ends_when_all_that_it_killed_are_gone(process: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [True, True, True, False]
    monkeypatch.setattr(process, "_kill_all", lambda: there.pop(0))
    assert process.sweep()
    assert there == []


def test_a_sweep_ends_in_time_whatever_stays(process: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_kill_all", lambda: True)
    monkeypatch.setattr(process, "GONE_S", 0.05)
    assert process.sweep()
