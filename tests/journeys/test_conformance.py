"""Scaffolds tried out as docs/conformance.md says: the program and manifest of the page, and a real CLI."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_images.build import build
from sandbox_images.build_host import this_machine
from sandbox_images.catalogue import load
from sandbox_images.engine import Engine
from service.domain.agents import SCREENS, Driver
from service.scaffolds.registry import scaffold_for
from service.scaffolds.shipped import SHIPPED, find
from tests.journeys.readme import ROOT
from tests.journeys.stack import Stack, wait_until

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


def block(fence: str) -> str:
    (found,) = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def command(service: Stack, *arguments: str, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(service.data_dir), "WORKSTEAD_URL": service.url,
           "WORKSTEAD_TOKEN": service.token}  # fmt: skip
    argv = [sys.executable, "-c", "from workstead.cli import main; main()", *arguments]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT)


def results(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {each["case"]: each for each in map(json.loads, done.stdout.splitlines())}


@pytest.mark.timeout(420)
def test_the_pages_manifest_scaffold_passes_every_case(service: Stack, tmp_path: Path) -> None:
    (tmp_path / "small_agent.py").write_text(block("python agent"))
    (tmp_path / "small.toml").write_text(block("toml agent"))
    registered = command(service, "scaffolds", "register", str(tmp_path / "small.toml"))
    assert registered.returncode == 0, registered.stderr
    done = command(service, "scaffolds", "conformance", "small-agent@1", "--json")
    found = results(done)
    assert {case: (each["result"], each["wrong"]) for case, each in found.items()} == {
        case: ("pass", []) for case in ("success", "401", "429", "500", "timeout", "stop", "huge_output")
    }, done.stderr
    assert done.returncode == 0
    assert found["success"]["argv"] == ["python3", "/workspace/.home/kit/small_agent.py"]
    assert [each["status"] for each in found["429"]["detail"]["wire"]][:3] == [429, 429, 200]
    badge = service.call("GET", "/v1/scaffolds/small-agent@1")["conformance"]
    assert (badge["passed"], badge["failed"], badge["skipped"]) == (7, 0, 0)


@pytest.mark.timeout(2000)
@pytest.mark.parametrize(
    "name", [row.name for row in SHIPPED if scaffold_for(row.kind).driver in {Driver.KIT, Driver.LOOP}]
)
def test_every_shipped_scaffold_passes_every_case(
    name: str, service: Stack, record_property: Callable[[str, object], None]
) -> None:
    _with_kit(name)
    done = command(service, "scaffolds", "conformance", f"{name}@latest", "--json", timeout_s=1900)
    found = results(done)
    for case, each in found.items():
        record_property(case, f"{each['result']}: {each['seen']} {each['wrong']}")
    wrong = {case: each["wrong"] for case, each in found.items() if each["result"] != "pass"}
    shipped = find(f"{name}@latest")
    assert (len(found), wrong) == (8 if shipped and shipped.surface in SCREENS else 7, {}), done.stderr


def _with_kit(name: str) -> None:
    """Build the kit of a program that few use."""
    shipped = find(f"{name}@latest")
    assert shipped is not None
    if shipped.kit is None:
        return
    engine = Engine()
    try:
        build(engine, load(), this_machine(), [shipped.kit])
    finally:
        engine.close()


@pytest.mark.timeout(300)
def test_a_program_that_does_nothing_fails_and_says_why(service: Stack, tmp_path: Path) -> None:
    manifest = {"name": "idler", "version": "1", "dialect": "openai", "argv": ["true"]}
    service.call("POST", "/v1/scaffolds", json=manifest)
    done = command(service, "scaffolds", "conformance", "idler@1", "--case", "success", "--case", "401", "--json")
    found = results(done)
    assert done.returncode == 1
    assert {case: each["result"] for case, each in found.items()} == {"success": "fail", "401": "fail"}
    assert "output/report.csv was not delivered" in found["success"]["wrong"]
    assert "the provider was never asked" in found["401"]["wrong"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("surface", "cases"),
    [
        ("shell", ["remote_success", "remote_stop", "remote_timeout", "remote_lease_lost"]),
        ("desktop", ["remote_desktop", "remote_stop"]),
    ],
)
def test_a_remote_client_goes_through_its_own_cases(service: Stack, surface: str, cases: list[str]) -> None:
    scaffold = {"name": f"far-{surface}", "version": "1", "kind": "remote", "surface": surface}
    service.call("POST", "/v1/scaffolds", json=scaffold)
    of = f"/v1/scaffolds/far-{surface}@1/conformance"
    operation = service.call("POST", of, json={"cases": cases})
    client = threading.Thread(target=_drive_all, args=(service, operation["id"], len(cases)))
    client.start()

    def ended() -> dict[str, Any] | None:
        seen = service.call("GET", f"/v1/operations/{operation['id']}", params={"wait_s": 5})
        return seen if seen["state"] not in {"queued", "running"} else None

    told = wait_until("the operation has ended", ended, 240)
    client.join(30)
    listed = service.call("GET", of)["data"]
    assert {each["case"]: each["wrong"] for each in listed} == {case: [] for case in cases}, told
    assert told["result"]["passed"] == len(cases)


def _drive_all(service: Stack, operation_id: str, cases: int) -> None:
    """Claim each run of the operation once; do the work of those that say so, and keep the others."""
    done: dict[str, dict[str, str]] = {}
    deadline = time.monotonic() + 200
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token}"}, timeout=60) as http:
        while time.monotonic() < deadline:
            runs = http.get("/v1/runs", params={"label.conformance": operation_id}).json()["data"]
            for run in runs:
                _once(http, run, done)
            if len(runs) == cases and all(run["phase"] == "done" for run in runs):
                return
            time.sleep(0.5)


def _once(http: httpx.Client, run: dict[str, Any], claimed: dict[str, dict[str, str]]) -> None:
    base, case = f"/v1/runs/{run['id']}", run["labels"]["case"]
    silent = case == "remote_lease_lost" and len(claimed.get(run["id"], {})) == 1
    if run["id"] in claimed and not silent:
        http.post(f"{base}/heartbeat", headers=claimed[run["id"]])
        return
    answer = http.post(f"{base}/claim", json={"holder": "a client under test"})
    if answer.status_code != 201:
        return
    lease = {"Workstead-Lease": answer.json()["lease"]}
    claimed[run["id"]] = lease | ({"again": "yes"} if silent else {})
    if case == "remote_desktop":
        body = {"actions": [{"type": "click", "x": 640, "y": 400}]}
        acted = http.post(f"{base}/desktop/actions", json=body, headers=lease).json()
        assert [r["error"] for r in acted["results"]] == [None], acted
    if case in ("remote_success", "remote_desktop") or silent:
        summary = "# Summary\n\nThe report lists the inputs — naïve, but complete ✓\n"
        for path, text in (("output/report.csv", "name,size_bytes\n"), ("output/summary.md", summary)):
            http.put(f"{base}/files/{path}", content=text.encode(), headers=lease)
        http.post(f"{base}/finish", json={"status": "success"}, headers=lease)
