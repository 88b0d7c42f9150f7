"""Every image folder is complete, and what build steps need of the host cannot stay in an image."""

import re
from pathlib import Path

import pytest

from sandbox_images.build_host import FOLDER
from sandbox_images.catalogue import HERE, load
from tests.architecture.repository import files, text

_IMAGES = load().images
_DOCKERFILES = sorted(path for path in files() if path.name == "Dockerfile" and path.parts[0] == "sandbox_images")
_STAGE = re.compile(r"^FROM .*$", re.MULTILINE | re.IGNORECASE)


@pytest.mark.parametrize("name", _IMAGES)
def test_folder_is_complete(name: str) -> None:
    assert {"Dockerfile", "README.md", "smoke.sh"} <= {path.name for path in _IMAGES[name].folder.iterdir()}


def test_every_folder_is_in_the_catalogue() -> None:
    assert {str((HERE.parent / path).parent.relative_to(HERE)) for path in _DOCKERFILES} == set(_IMAGES)


@pytest.mark.parametrize("path", _DOCKERFILES, ids=str)
def test_host_settings_reach_only_stages_that_are_thrown_away(path: Path) -> None:
    *thrown, last = _STAGE.split(text(path) or "")
    assert FOLDER not in last
    assert f"/{FOLDER.strip('.')}" not in last
    # Without the host's settings these fail behind a proxy, so they do not belong into the last stage.
    assert not re.search(r"\b(pip3? install|npm (install|ci|pack)|npx)\b", last)
    for stage in thrown:
        assert FOLDER not in stage or "LABEL org.workstead.stage=build" in stage


@pytest.mark.parametrize("path", _DOCKERFILES, ids=str)
def test_parent_is_given_and_package_lists_are_removed(path: Path) -> None:
    dockerfile = text(path) or ""
    assert re.search(r"^ARG PARENT\nFROM \$\{PARENT\}", dockerfile, re.MULTILINE)
    assert ("apt-get install" in dockerfile) == ("rm -rf /var/lib/apt/lists/*" in dockerfile)
    assert dockerfile.rstrip().splitlines()[-1].startswith(("USER 10001:10001", "CMD", "ENTRYPOINT", "COPY --from="))
