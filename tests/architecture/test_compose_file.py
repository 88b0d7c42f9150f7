"""compose.yaml: every privilege has its reason beside it, and the API has none."""

import re

import pytest

from tests.architecture.repository import ROOT

_TEXT = (ROOT / "compose.yaml").read_text()
_SERVICE = re.compile(r"^  (\w+):(?: &\w+)?\n((?:    .*\n|\n|  #.*\n)*)", re.MULTILINE)
_SERVICES: dict[str, str] = dict(_SERVICE.findall(_TEXT.split("\nservices:\n")[1].split("\nnetworks:\n")[0]))


def test_the_services_are_found() -> None:
    assert set(_SERVICES) == {"postgres", "migrate", "api", "gateway", "worker", "grader"}


@pytest.mark.parametrize(("service", "least"), [("worker", 5), ("gateway", 3)])
def test_each_capability_has_a_reason(service: str, least: int) -> None:
    added = _SERVICES[service].split("cap_add:\n")[1].split("\n    #")[0]
    lines = [line for line in added.splitlines() if line.startswith("      - ")]
    assert len(lines) >= least
    unexplained = [line for line in lines if not re.search(r"[A-Z_]+\s+# \w", line)]
    assert unexplained == []


def test_each_mount_of_the_worker_has_a_reason() -> None:
    lines = _SERVICES["worker"].split("volumes:\n")[1].splitlines()
    for number, line in enumerate(lines):
        if line.startswith("      - "):
            assert lines[number - 1].startswith("      # "), line


def test_api_gateway_and_database_have_no_engine_and_no_device() -> None:
    for name in ("postgres", "migrate", "api", "gateway"):
        body = _SERVICES[name]
        assert "docker.sock" not in body
        assert "/dev" not in body
        assert "privileged:" not in _TEXT
        assert "SYS_ADMIN" not in body
        assert "cap_drop: [ALL]" in body
