"""An image that a project brings, from its archive to a run inside it, on the real engine."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.jobs import make_agent, make_task, record, submit, upload
from tests.journeys.stack import Stack, wait_until
from tests.journeys.test_command_line import workstead
from workstead.cli.examination.running import examine_waiting

MARK = "brought by a client"
RECIPE = """FROM {base}
USER root
RUN mkdir /srv/tools && echo '{mark}' > /srv/tools/mark
VOLUME /data
ENV LD_PRELOAD=/no/such.so
ENTRYPOINT ["/bin/false"]
LABEL org.workstead.image=base
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What ``docker save`` says of an image of a client's own; the engine has forgotten it."""
    folder = tmp_path_factory.mktemp("context")
    tag = f"client-image:{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    (folder / "Dockerfile").write_text(RECIPE.format(base=Stack.image("base"), mark=MARK))
    _docker("build", "--quiet", "--tag", tag, str(folder))
    try:
        _docker("save", "--output", str(folder / "saved.tar"), tag)
    finally:
        _docker("rmi", tag)
    return (folder / "saved.tar").read_bytes()


def _docker(*argv: str) -> None:
    subprocess.run(["docker", *argv], check=True, capture_output=True, timeout=300)


def _tags(service: Stack) -> str:
    deployment = (service.data_dir / "deployment").read_text().strip()
    argv = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}", f"workstead-image/{deployment}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def _operation(service: Stack, operation_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        found = service.call("GET", f"/v1/operations/{operation_id}", params={"wait_s": 5, "until": "ended"})
        return found if found["ended_at"] is not None else None

    return wait_until("the import ended", ended, 240)


@pytest.mark.timeout(300)
def test_a_run_works_inside_an_image_that_its_project_brought(service: Stack, archive: bytes) -> None:
    sha256 = upload(service, archive)["sha256"]
    image = service.call("POST", "/v1/images", json={"name": "client/tools", "archive": sha256})
    done = _operation(service, image["operation_id"])
    assert done["state"] == "succeeded", done["problem"]
    assert done["result"]["hosts"] == [service.data_dir.name]
    image = service.call("GET", f"/v1/images/{image['id']}")
    assert "VOLUME /data: a small scratch folder, emptied at the end" in image["report"]["overridden"]

    agent = make_agent(service, ["sh", "-c", "cat /srv/tools/mark; id -u; echo [$LD_PRELOAD]; df /data | tail -n 1"])
    task = make_task(service, environment="client/tools")
    seen = record(service, submit(service, task, agent))
    assert seen.run["ended_because"] == "completed"
    n = seen.run["attempt"]  # on a busy machine an engine may need another
    lines = seen.output(n).splitlines()
    assert lines[:3] == [MARK, "10001", "[]"]
    assert lines[3].startswith("tmpfs")
    attempt = service.call("GET", f"/v1/runs/{seen.run['id']}/attempts/{n}")
    assert attempt["environment_image"] == image["report"]["image_id"]

    # Its label and its digest give it no name that others could use.
    foreign = make_task(service, environment=image["report"]["image_id"])
    waits = submit(service, foreign, agent)
    hold = service.call("GET", f"/v1/runs/{waits}")["hold"]
    assert (hold["reason"], image["report"]["image_id"] in hold["detail"]) == ("image_missing", True)
    service.call("POST", f"/v1/runs/{waits}/stop", json={"mode": "discard"})

    assert _tags(service) == f"workstead-image/{_tags(service).rpartition('/')[2]}"
    service.call("DELETE", f"/v1/images/{image['id']}")
    wait_until("the host has removed it", lambda: _tags(service) == "", 60)


def test_a_run_whose_kit_no_host_has_waits_and_says_so(service: Stack) -> None:
    agent = make_agent(service, ["true"], kit="kits/nowhere")
    run_id = submit(service, make_task(service), agent)
    hold = service.call("GET", f"/v1/runs/{run_id}")["hold"]
    assert hold["reason"] == "image_missing"
    assert "'kits/nowhere'" in hold["detail"]
    [host] = service.call("GET", "/v1/hosts")["data"]
    assert [o for o in host["reasons"] if o["reason"] == "image_missing" and "'kits/nowhere'" in o["detail"]]
    assert ["'kits/nowhere'" in found.said for found in examine_waiting(service.data_dir)] == [True]
    service.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "discard"})
    assert service.wait_run(run_id)["attempt"] == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_folder_is_built_here_and_brought(service: Stack, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {Stack.image('base')}\nUSER 0\nCOPY mark /srv/mark\n")
    (tmp_path / "mark").write_text(MARK)
    built = workstead(service, "images", "build", "client/built", tmp_path)
    assert built.returncode == 0, built.stderr
    assert "client/built, ready" in built.stdout
    assert "not heeded: USER 0: everything runs as 10001:10001" in built.stdout
    assert f"on hosts: {service.data_dir.name}" in built.stdout
    seen = record(service, submit(service, make_task(service, environment="client/built"),
                                  make_agent(service, ["cat", "/srv/mark"])))  # fmt: skip
    assert seen.output(seen.run["attempt"]) == MARK
    assert workstead(service, "images", "delete", "client/built").returncode == 0
    (tmp_path / "Dockerfile").write_text("FROM scratch\nRUN nothing\n")
    failed = workstead(service, "images", "build", "client/broken", tmp_path)
    assert (failed.returncode, "docker build failed" in failed.stderr) == (1, True)
