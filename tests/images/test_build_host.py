"""Certificates, proxies and index settings reach the build steps and stay in no layer, history or leftover image."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sandbox_images.build import Table, build_one
from sandbox_images.build_host import FOLDER, BuildHost, context_files
from sandbox_images.catalogue import STAGE_LABEL, Image
from sandbox_images.engine import BuildFailed, Engine
from tests.images.containers import client, traces

_PROXY = "http://proxy-canary.invalid:3128"
_INDEX = "https://user:index-canary@packages.invalid/simple"
_AUTHORITY = "-----BEGIN CERTIFICATE-----\nAUTHORITYCANARY\n-----END CERTIFICATE-----\n"
_CANARIES = ["proxy-canary", "index-canary", "AUTHORITYCANARY", "npm-canary"]
# The last stage spells no canary out: its own text is in the history.
_DOCKERFILE = """\
ARG PARENT
FROM ${PARENT} AS build
LABEL org.workstead.stage=build
USER root
COPY .build-host/ /build-host/
RUN . /build-host/env.sh \\
 && grep -q AUTHORITYCANARY "$PIP_CERT" && grep -q AUTHORITYCANARY "$NODE_EXTRA_CA_CERTS" \\
 && grep -q index-canary "$PIP_CONFIG_FILE" && grep -q npm-canary "$NPM_CONFIG_GLOBALCONFIG" \\
 && [ "$https_proxy" = http://proxy-canary.invalid:3128 ] && [ "$HTTPS_PROXY" = "$https_proxy" ] \\
 && mkdir -p /opt/kit && echo made > /opt/kit/made
FROM ${PARENT}
USER root
RUN [ "${https_proxy#*proxy-can}" = ary.invalid:3128 ] && [ -z "$(find / -xdev -maxdepth 1 -name 'build-h*')" ]
COPY --from=build /opt/kit /opt/kit
"""


@pytest.fixture
def host() -> BuildHost:
    files = dict(context_files({}, Path("/nonexistent")))
    files[f"{FOLDER}/ca.crt"] = _AUTHORITY.encode()
    files[f"{FOLDER}/pip.conf"] = f"[global]\nindex-url = {_INDEX}\n".encode()
    files[f"{FOLDER}/npmrc"] = b"registry=https://npm-canary.invalid/\n"
    return BuildHost(files, {"https_proxy": _PROXY, "HTTPS_PROXY": _PROXY})


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Image]:
    made = Image(f"test-{uuid4().hex[:8]}", "base", "this test", tmp_path)
    (tmp_path / "Dockerfile").write_text(_DOCKERFILE)
    yield made
    with client() as engine:
        for built in engine.images.list(name=f"workstead/{made.name}"):
            engine.images.remove(built.id, force=True)


def test_settings_reach_build_steps_and_stay_nowhere(
    engine: Engine, images: Table, image: Image, host: BuildHost
) -> None:
    built = build_one(engine, image, str(images["base"]["tag"]), host)
    assert traces(built, [*_CANARIES, "/build-host", f"{FOLDER}/"]) == []
    assert _left_over_stages() == []


def test_a_failing_step_is_reported_with_its_output(
    engine: Engine, images: Table, image: Image, host: BuildHost
) -> None:
    (image.folder / "Dockerfile").write_text("ARG PARENT\nFROM ${PARENT}\nRUN echo saw-this && exit 3\n")
    with pytest.raises(BuildFailed, match=r"(?s)saw-this.*returned a non-zero code: 3"):
        build_one(engine, image, str(images["base"]["tag"]), host)
    assert _left_over_stages() == []


def _left_over_stages() -> list[Any]:
    with client() as engine:
        return engine.images.list(all=True, filters={"label": f"{STAGE_LABEL}=build"})
