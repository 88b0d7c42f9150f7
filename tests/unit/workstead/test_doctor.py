"""Doctor: every finding in words, with what to do."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.unit.workstead.fake_api import Script, sync_client
from workstead.cli import doctor
from workstead.cli.app import app
from workstead.cli.engine import Engine, EngineAway
from workstead.cli.examination import machine, running
from workstead.cli.examination.engine import examine_engine, examine_images
from workstead.cli.examination.finding import Finding
from workstead.config import Connection, write_file

INFO: dict[str, Any] = {
    "Runtimes": {"runc": {}},
    "CgroupVersion": "2",
    "LiveRestoreEnabled": False,
    "Driver": "overlay2",
}


def engine(runc: str, api: str = "1.41") -> dict[str, Finding]:
    versions = {"Version": "20.10", "ApiVersion": api, "Components": [{"Name": "runc", "Version": runc}]}
    return {f.what: f for f in examine_engine(INFO, versions)}


def port_probe(trouble: str | None) -> Callable[[str, int], str | None]:
    """Return what says so of every port: these tests open no socket."""
    answers: defaultdict[tuple[str, int], str | None] = defaultdict(lambda: trouble)
    return lambda host, port: answers[host, port]


class TestEngine:
    @pytest.mark.fault(10)
    @pytest.mark.parametrize(
        ("runc", "ok"), [("1.1.5+ds1", None), ("1.3.5", None), ("1.3.6", True), ("1.10.0", True), ("", None)]
    )
    def test_runc_floor(self, runc: str, ok: bool | None) -> None:
        found = engine(runc)["runc"]
        assert found.ok is ok
        assert ("untrusted" in found.said) is (ok is None)

    @pytest.mark.parametrize(("api", "ok"), [("1.40", False), ("1.41", True), ("1.100", True), ("", False)])
    def test_oldest_engine(self, api: str, ok: bool) -> None:
        assert engine("1.3.6", api)["engine"].ok is ok

    def test_restrictions_are_notes_in_words(self) -> None:
        found = engine("1.3.6")
        assert found["runtimes"].ok is None
        assert "live-restore in daemon.json" in found["live-restore"].said

    def test_errors_are_ours(self, tmp_path: Path) -> None:
        with Engine(f"unix://{tmp_path}/none.sock") as away, pytest.raises(EngineAway):
            away.get("/info")

    def test_absent_is_missing_and_the_rest_is_looked_at(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "why_not_free", port_probe(None))
        away = partial(Engine, f"unix://{tmp_path}/none.sock")
        findings = {f.what: f for f in doctor.examine(away, tmp_path, self_test=False)}
        assert findings["engine"].ok is False
        assert "make engine" in findings["engine"].said
        assert set(findings) >= {"disk", "memory", "user", "data", "service", "port"}


class TestImages:
    def catalogue(self, folder: Path) -> Path:
        rows = "[images.base]\n[images.workbench]\n[images.documents]\n[images.rare]\non_demand = true\n"
        (folder / "images.toml").write_text(rows)
        return folder / "images.toml"

    def test_all(self, tmp_path: Path) -> None:
        have = {"base": "a", "workbench": "b", "documents": "c"}
        assert examine_images(have, self.catalogue(tmp_path)).ok is True

    def test_what_nothing_runs_without_is_missing(self, tmp_path: Path) -> None:
        found = examine_images({"base": "a", "documents": "c"}, self.catalogue(tmp_path))
        assert found.ok is False
        assert "without workbench (`make images`" in found.said

    def test_what_only_a_feature_needs_is_a_note(self, tmp_path: Path) -> None:
        found = examine_images({"base": "a", "workbench": "b"}, self.catalogue(tmp_path))
        assert (found.ok, "documents" in found.said) == (None, True)

    def test_without_the_source_tree(self, tmp_path: Path) -> None:
        assert examine_images({"base": "a", "workbench": "b"}, tmp_path / "none").ok is True


class TestMachine:
    def found(self, data_dir: Path, **environ: str) -> dict[str, Finding]:
        return {f.what: f for f in machine.examine_machine(data_dir, None, environ)}

    def test_data_directory(self, tmp_path: Path) -> None:
        assert self.found(tmp_path / "new/er")["data"].ok is True
        own = tmp_path / "own"
        own.mkdir(mode=0o755)
        assert self.found(own)["data"].ok is True
        own.chmod(0o777)
        assert "chmod 755" in self.found(own)["data"].said
        (tmp_path / "file").write_text("")
        assert self.found(tmp_path / "file")["data"].ok is False

    def test_a_proxy_would_get_the_token(self, tmp_path: Path) -> None:
        assert "proxy" not in self.found(tmp_path)
        assert self.found(tmp_path, http_proxy="http://p")["proxy"].ok is None
        assert self.found(tmp_path, http_proxy="http://p", no_proxy="x, localhost")["proxy"].ok is True

    def test_little_room_is_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "GiB free" in self.found(tmp_path)["disk"].said
        monkeypatch.setattr(machine, "FREE_BYTES", 1 << 60)
        monkeypatch.setattr(machine, "MEMORY_BYTES", 1 << 60)
        found = self.found(tmp_path)
        assert (found["disk"].ok, found["memory"].ok) == (None, None)
        assert "WORKSTEAD_WORKER__SLOTS" in found["memory"].said

    @pytest.mark.parametrize(("trouble", "ok"), [("Address already in use", False), (None, True)])
    def test_port(self, monkeypatch: pytest.MonkeyPatch, trouble: str | None, ok: bool) -> None:
        monkeypatch.setattr(machine, "why_not_free", port_probe(trouble))
        assert machine.examine_port({}, None).ok is ok
        assert machine.examine_port({"WORKSTEAD_API__PORT": "81"}, "http://127.0.0.1:81/").ok is True
        assert machine.examine_port({"WORKSTEAD_API__PORT": "0"}, None).ok is True
        assert machine.examine_port({"WORKSTEAD_API__PORT": "eighty"}, None).ok is False


class TestService:
    def test_none_is_a_note_with_what_to_do(self, tmp_path: Path) -> None:
        found, url = running.examine_service(tmp_path)
        assert (found.ok, url) == (None, None)
        assert "workstead serve" in found.said

    def test_one_that_is_away_is_a_note(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_file(tmp_path / "client.json", Connection("http://there", "wst_x"))
        away = sync_client(Script(httpx.ConnectError("refused")), retries=0)
        monkeypatch.setattr(running, "Client", lambda *_args, **_options: away)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        found, _ = running.examine_service(tmp_path)
        assert found.ok is None
        assert "does not answer well" in found.said
        assert "wst_x" not in found.said


def started(program: str, *_: str) -> list[str]:
    return [sys.executable, "-c", program]


class TestSelfTest:
    def run(self, monkeypatch: pytest.MonkeyPatch, program: str, timeout_s: float = 20) -> list[Finding]:
        monkeypatch.setattr(running, "command", partial(started, program))
        return list(running.try_out(os.environ, timeout_s))

    def test_findings_come_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        line = json.dumps({"what": "quota", "ok": None, "said": "soft"})
        assert self.run(monkeypatch, f"print('noise'); print({line!r}); print('[1]')") == [
            Finding("quota", None, "soft")
        ]

    def test_failure_is_said_with_its_last_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (found,) = self.run(monkeypatch, "import sys; sys.exit('no such setting')")
        assert found.ok is False
        assert "no such setting" in found.said

    def test_silence_is_not_health(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert [f.ok for f in self.run(monkeypatch, "")] == [False]

    def test_a_stuck_one_is_interrupted_so_that_it_can_clean_up(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        mark, waiting = tmp_path / "cleaned", "import time\ntry:\n time.sleep(60)\nfinally:\n open(%r, 'w')"
        (found,) = self.run(monkeypatch, waiting % str(mark), timeout_s=2)
        assert found.ok is False
        assert mark.exists()

    def test_without_the_server_it_is_a_note(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "find_spec", {"service": None}.get)
        assert [f.ok for f in running.try_out({})] == [None]


def test_output_for_machines_and_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "why_not_free", port_probe(None))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    result = CliRunner().invoke(app, ["doctor", "--json", "--no-self-test", "--data-dir", str(tmp_path)])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["state"] for row in rows} <= {"ok", "note", "missing"}
    assert rows[0]["what"] == "engine"
    assert result.exit_code == 1
