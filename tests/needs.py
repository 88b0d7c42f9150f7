"""What a test needs from the machine: skipped where it is missing, failed under ``CI=true``, where nothing may be."""

import os
import shutil
from functools import lru_cache
from typing import Any, NoReturn

import docker
import pytest
import requests
from docker.errors import DockerException

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def needs_docker() -> None:
    """Return if a Docker engine answers; else skip the test, or fail it in CI."""
    problem = _engine_problem()
    if problem:
        missing(f"no Docker engine ({problem}): make engine")


def needs_browser() -> str:
    """The path of a Chromium; else skip the test, or fail it in CI."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    return found or missing("no Chromium: make browser")


def missing(reason: str) -> NoReturn:
    """Skip the running test; fail it where ``CI=true``."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@lru_cache(maxsize=1)
def _engine_problem() -> str | None:
    try:
        client: Any = docker.from_env(timeout=10)
        try:
            client.ping()
        finally:
            client.close()
    except (DockerException, requests.RequestException) as error:
        return str(error)[:200]
    return None
