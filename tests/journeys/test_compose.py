"""compose.yaml on this engine: it comes up from nothing, does the main job, and leaves nothing."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import docker
import httpx
import pytest

from tests.architecture.repository import ROOT
from tests.journeys import readme
from tests.journeys.leftovers import Leftovers
from tests.journeys.stack import wait_until

pytestmark = pytest.mark.slow
WORKSTEAD = Path(sys.executable).with_name("workstead")
UP_S = 900
"""The images may have to be made first."""


@dataclass(frozen=True)
class Deployment:
    env: Mapping[str, str]
    project: str
    url: str

    def compose(self, *arguments: str, timeout: float = 180) -> str:
        done = subprocess.run(
            ["bash", "tools/compose.sh", *arguments], cwd=ROOT, env=self.env, text=True, capture_output=True,
            timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def container(self, name: str) -> dict[str, Any]:
        client = cast("Any", docker.from_env())
        labels = [f"com.docker.compose.project={self.project}", f"com.docker.compose.service={name}"]
        try:
            return cast("dict[str, Any]", client.containers.list(filters={"label": labels})[0].attrs)
        finally:
            client.close()


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    folder = Path(tempfile.mkdtemp(prefix="workstead-compose-", dir="/var/tmp"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    project = folder.name.replace("_", "x").lower()
    env = {
        **os.environ,
        "COMPOSE_PROJECT_NAME": project,
        "WORKSTEAD_DATA_DIR": str(folder),
        "WORKSTEAD_LISTEN": address,
        "WORKSTEAD_PUBLIC_URL": f"http://{address}",
    }
    there = Deployment(env, project, f"http://{address}")
    try:
        there.compose(timeout=UP_S)
        wait_until("the API answers", lambda: _answers(there.url), 90, 0.2)
        yield there
    finally:
        there.compose("down", "-v", "--timeout", "30")
        label = (folder / "deployment").read_text() if (folder / "deployment").exists() else "none"
        left = Leftovers(label, folder).all()
        shutil.rmtree(folder)
        assert left == {}


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def token(deployment: Deployment) -> str:
    return deployment.compose("exec", "-T", "api", "python", "-m", "service", "token", "create").split()[-1]


@pytest.mark.timeout(UP_S + 300)
def test_the_main_job_runs(deployment: Deployment, token: str, tmp_path: Path) -> None:
    env = {**os.environ, "WORKSTEAD_URL": deployment.url, "WORKSTEAD_TOKEN": token}
    done = subprocess.run(
        [WORKSTEAD, "demo", "--attach", "--output", tmp_path / "out"],
        env=env, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
    assert "demo-solver@1, demo-oracle@1 pass all, demo-nop@1 none" in done.stdout


def test_the_gateway_comes_up_and_can_be_given_a_secret(deployment: Deployment, token: str) -> None:
    spec = {"name": "acme/one", "provider": "acme", "upstream_id": "one", "dialect": "openai"}
    with httpx.Client(base_url=deployment.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
        model = http.post("/v1/models", json={**spec, "base_url": "https://api.acme.example.com/v1"}).json()

        def given() -> bool:
            return http.put(f"/v1/models/{model['id']}/credential", json={"secret": "x"}).is_success

        wait_until("the gateway has registered its key", given, 60, 0.5)


@pytest.mark.timeout(300)
def test_conformance_finds_its_provider_across_containers(deployment: Deployment, token: str) -> None:
    """Sandbox → gateway's container → scripted provider in the grader's."""
    env = {**os.environ, "WORKSTEAD_URL": deployment.url, "WORKSTEAD_TOKEN": token}
    command = [WORKSTEAD, "scaffolds", "conformance", "tool-agent@1", "--case", "success", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
    assert json.loads(done.stdout)["result"] == "pass"


def test_the_curl_journey_of_the_readme(deployment: Deployment, token: str) -> None:
    done = readme.run(readme.of("The service by hand"), deployment.url, token)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-3000:]
    assert "'fraction': 1.0" in done.stdout.splitlines()[-1]


def test_each_process_has_what_it_needs_and_no_more(deployment: Deployment) -> None:
    api, worker = deployment.container("api"), deployment.container("worker")
    assert api["HostConfig"]["CapAdd"] in (None, [])
    assert api["HostConfig"]["CapDrop"] == ["ALL"]
    assert api["HostConfig"]["ReadonlyRootfs"] is True
    assert not [m for m in api["Mounts"] if "docker.sock" in m["Destination"] or m["Destination"] == "/dev"]
    assert worker["HostConfig"]["Privileged"] is False
    assert worker["HostConfig"]["CapDrop"] == ["ALL"]
    for process in ("postgres", "api", "worker", "grader"):
        found = json.dumps(deployment.container(process)["Config"]["Env"])
        secret = (Path(deployment.env["WORKSTEAD_DATA_DIR"]) / "secrets/database_password").read_text().strip()
        assert secret not in found


def test_sandboxes_are_offered_under_the_self_test(deployment: Deployment) -> None:
    """A worker that could not plant would offer no runtime at all."""
    said = deployment.compose("logs", "--no-color", "worker")
    line = next(json.loads(t[t.index("{") :]) for t in said.splitlines() if '"host_up"' in t)
    assert "runc" in line["runtimes"]
