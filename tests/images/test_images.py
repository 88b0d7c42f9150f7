"""Each image builds, does what its README says, is found by label, and holds nothing of the machine that built it."""

import re
from pathlib import Path

import pytest

from sandbox_images import build_host
from sandbox_images.build import Table, build, resolve
from sandbox_images.build_host import FOLDER, BuildHost, this_machine
from sandbox_images.catalogue import CONTENT_LABEL, NAME_LABEL, Catalogue, load
from sandbox_images.engine import Engine
from tests.images.containers import client, run_as_agent, traces
from tests.images.kits import is_kit

_CATALOGUE: Catalogue = load()
_DEFAULT = [image.name for image in _CATALOGUE.ordered()]
_WITH_SHELL = [name for name in _DEFAULT if not is_kit(name)]
_LARGE = [name for name, image in _CATALOGUE.images.items() if image.on_demand and not is_kit(name)]
_LOCAL_AUTHORITIES = Path("/usr/local/share/ca-certificates")


@pytest.mark.parametrize("name", _WITH_SHELL)
def test_smoke(name: str, images: Table) -> None:
    script = (_CATALOGUE.images[name].folder / "smoke.sh").read_text()
    code, output = run_as_agent(str(images[name]["id"]), script)
    assert (code, "smoke passed" in output) == (0, True), output


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", _LARGE)
def test_smoke_of_those_on_demand(name: str, engine: Engine) -> None:
    """They are built here: of the tools of whole collections, each does one thing."""
    built = build(engine, _CATALOGUE, this_machine(), [name])
    script = (_CATALOGUE.images[name].folder / "smoke.sh").read_text()
    code, output = run_as_agent(str(built[name]["id"]), script, memory="2g")
    assert (code, "smoke passed" in output) == (0, True), output


@pytest.mark.parametrize("name", _DEFAULT)
def test_is_found_by_label(name: str, images: Table) -> None:
    row = images[name]
    with client() as engine:
        found = engine.images.list(filters={"label": [f"{NAME_LABEL}={name}", f"{CONTENT_LABEL}"]})
        labels = engine.images.get(row["id"]).labels
    assert row["id"] in {image.id for image in found}
    assert row["tag"] == f"workstead/{name}:{labels[CONTENT_LABEL]}"


def test_nothing_is_built_twice(engine: Engine, images: Table) -> None:
    assert build(engine, _CATALOGUE, BuildHost()) == images == resolve(engine, _CATALOGUE)


def test_no_setuid_program_is_of_use_and_no_package_list_is_left(images: Table) -> None:
    code, output = run_as_agent(str(images["workbench"]["id"]), "ls -A /var/lib/apt/lists /var/cache /var/log; id -u")
    assert (code, output.split()[-1]) == (0, "10001")
    assert not re.search(r"_Packages|\.deb\b|\.log\b", output)


def test_real_images_hold_nothing_of_this_machine(images: Table) -> None:
    """All layers, history and configuration: no build folder, no local authority, no proxy, no index address."""
    host = this_machine()
    needles = [f"/{FOLDER.strip('.')}", f"{FOLDER}/", *host.proxies.values(), *_local_authority_lines()]
    conf = host.files[f"{FOLDER}/pip.conf"].decode()
    needles += re.findall(r"https?://\S+", conf)
    # `workbench` stands on `base`, so that its layers are all layers.
    assert traces(str(images["workbench"]["id"]), needles) == []


def _local_authority_lines() -> list[str]:
    """One line from the middle of each certificate that an administrator of this machine added."""
    bodies = [path.read_text().splitlines() for path in sorted(_LOCAL_AUTHORITIES.glob("*.crt"))]
    return [lines[len(lines) // 2] for lines in bodies if len(lines) > 2]


def test_environment_script_names_only_files_that_are_sent() -> None:
    sent = set(this_machine().files)
    script = this_machine().files[f"{build_host.FOLDER}/env.sh"].decode()
    assert {f"{FOLDER}/{name}" for name in re.findall(r"\$here/([\w.]+)", script)} <= sent
