"""The locks: every requirement with hashes, no index address, and nothing of pyproject.toml left out."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.repository import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock")


def _entries(lock: str) -> dict[str, str]:
    joined = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines()]
    return {line.split()[0]: line for line in lines if line and not line.startswith("#")}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_with_hashes(lock: str) -> None:
    loose = [name for name, line in _entries(lock).items() if "==" not in name or "--hash=sha256:" not in line]
    assert loose == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_index_addresses(lock: str) -> None:
    assert re.findall(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", (ROOT / lock).read_text()) == []


def test_the_locks_satisfy_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {"requirements.lock": project["project"]["dependencies"]}
    wanted["requirements-dev.lock"] = [*wanted["requirements.lock"], *project["dependency-groups"]["dev"]]
    unmet: list[str] = []
    for lock, requirements in wanted.items():
        pins = dict(entry.split("==", 1) for entry in _entries(lock))
        versions = {canonicalize_name(name.split("[")[0]): version for name, version in pins.items()}
        for requirement in map(Requirement, requirements):
            version = versions.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                unmet.append(f"{lock}: {requirement} ({version})")
    assert unmet == []
