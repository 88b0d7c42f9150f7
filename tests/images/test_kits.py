"""Each kit brings everything: its smoke test passes in an environment of ours, in one without Python, and in one that
has no C library at all."""

from collections.abc import Iterator

import pytest
from docker.errors import NotFound

from sandbox_images.build import Table, build
from sandbox_images.build_host import this_machine
from sandbox_images.catalogue import load
from sandbox_images.engine import Engine
from tests.images.containers import client, traces
from tests.images.kits import environments, is_kit, run_with_kit, volume_of

_CATALOGUE = load()
_KITS = [name for name in _CATALOGUE.images if is_kit(name)]
_RARE = [name for name in _KITS if _CATALOGUE.images[name].on_demand]
_MARKED = [pytest.param(name, marks=[pytest.mark.slow] if name in _RARE else []) for name in _KITS]


@pytest.fixture(scope="module")
def places(images: Table) -> Iterator[dict[str, str]]:
    with environments(images) as made:
        yield made


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", _MARKED)
def test_smoke_in_any_environment(name: str, images: Table, engine: Engine, places: dict[str, str]) -> None:
    known = images if name in images else build(engine, _CATALOGUE, this_machine(), [name])
    script = (_CATALOGUE.images[name].folder / "smoke.sh").read_text()
    with volume_of(str(known[name]["id"])) as volume:
        for place, environment in places.items():
            code, output = run_with_kit(environment, volume, script)
            assert (code, "smoke passed" in output) == (0, True), f"{name} in {place}: {output}"


def test_the_environments_are_as_poor_as_they_claim(images: Table, places: dict[str, str]) -> None:
    with volume_of(str(images["kits/codex"]["id"])) as volume:
        assert run_with_kit(places["plain"], volume, "command -v python3 || echo none")[1] == "none\n"
        found = run_with_kit(places["bare"], volume, "ls /lib /lib64 /usr/lib 2>&1; ls /bin | wc -l")[1]
    assert found.count("No such file") == 3


@pytest.mark.parametrize("folder", ["/bin", "/usr", "/root", "/tmp", "/build-host"])
def test_a_kit_is_one_folder(folder: str, images: Table) -> None:
    with client() as engine:
        made = engine.containers.create(images["kits/codex"]["id"], ["/"])
        try:
            with pytest.raises(NotFound):
                engine.api.get_archive(made.id, folder)
        finally:
            made.remove()


def test_a_kit_holds_nothing_of_this_machine(images: Table) -> None:
    needles = ["/build-host", *this_machine().proxies.values()]
    assert traces(str(images["kits/codex"]["id"]), needles) == []
