"""Image ``desktop`` under the profile that its sandboxes have: the contract suite, Chromium's own sandbox, the session."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from service.domain.limits import GIB, Limits
from service.sandboxes.contract import Confinement, Sandbox
from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.testing.sandbox_bench import Bench, python
from service.testing.sandbox_suite import SUITE, Check
from tests.docker import desktop_scripts as scripts
from tests.docker.conftest import bench_on

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

QUICK = {"dangerous_calls_are_refused", "a_namespace_of_its_own_gives_nothing_of_the_host", "the_program_has_no_power"}
SIZE = Limits(memory_bytes=2 * GIB, disk_bytes=GIB, pids=1024)
VNC = {"0100007F:170C", "00000000000000000000000001000000:170C"}
"""Port 5900 of both loopback addresses, as the kernel writes them."""


def case(runtime: str, check: Check) -> ParameterSet:
    marks = [pytest.mark.fault(*check.faults)] if check.faults else []
    if runtime != "runc" or check.name not in QUICK:
        marks.append(pytest.mark.slow)  # what is not about confinement runs on image base in `make test`
    return pytest.param(runtime, check, id=f"{runtime}-{check.name}", marks=marks)


@pytest.mark.parametrize(
    ("runtime", "check"), [case(r, c) for r in RUNTIMES for c in SUITE if not c.runtimes or r in c.runtimes]
)
async def test_contract(backend: DockerBackend, runtime: str, check: Check) -> None:
    await check.run(await bench_on(backend, runtime, "desktop", "desktop"))


async def desktop_bench(backend: DockerBackend, confinement: Confinement = "desktop", runtime: str = "runc") -> Bench:
    bench = await bench_on(backend, runtime, "desktop", confinement)
    return replace(bench, spec=replace(bench.spec, limits=SIZE))


async def inside(sandbox: Sandbox, script: str) -> Any:
    return json.loads(await python(sandbox, scripts.SETUP + script, timeout_s=240))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desktop(backend: DockerBackend) -> AsyncIterator[Sandbox]:
    """One sandbox for the checks of a desktop's session: each leaves a session that runs, or none."""
    async with (await desktop_bench(backend)).sandbox() as made:
        yield made


async def test_a_session_is_there_at_once_and_listens_to_itself_only(desktop: Sandbox) -> None:
    seen = await inside(desktop, scripts.READY)
    assert seen["size"] == [1280, 800]
    assert seen["titles"] == ["panel"]
    assert set(seen["listening"]) <= VNC
    assert seen["listening"]
    assert seen["again"] < seen["first"], "a session that runs is found, not made"
    assert seen["abstract"] == []


async def test_chromium_keeps_its_own_sandbox(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    seen = await inside(desktop, scripts.CHROMIUM)
    assert "--no-sandbox" not in seen["command"]
    assert seen["renderers"]
    for renderer in seen["renderers"]:
        assert not set(renderer["spaces"]) & set(seen["here"]["spaces"])
        assert renderer["ids"] >= 2
        assert (renderer["seccomp"], renderer["filters"]) == (2, seen["here"]["filters"] + 1)


async def test_chromium_asks_the_policys_proxy(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    asked = await inside(desktop, scripts.PROXIED)
    assert "bank.example:443" in asked
    assert "http://shop.example/" in asked


@pytest.mark.slow
async def test_office_programs_start_without_a_dialog_also_after_a_crash(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    for titles in await inside(desktop, scripts.OFFICE):
        assert len([title for title in titles if title != "panel"]) == 1, titles


async def test_a_server_that_was_killed_or_hangs_is_replaced(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    seen = await inside(desktop, scripts.NEW_SERVER)
    assert not seen["same"]
    assert (seen["servers"], seen["titles"]) == (1, ["panel"])


async def test_a_full_tmp_is_said(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    assert await inside(desktop, scripts.FULL_TMP) == ["tmp_full", ["panel"]]


async def test_what_only_poses_as_a_server_is_no_screen(desktop: Sandbox) -> None:
    await inside(desktop, "print(ensured())")
    assert await inside(desktop, scripts.IMPOSTOR) == "x_server_gone"


async def test_a_browser_that_ends_comes_back(backend: DockerBackend) -> None:
    async with (await desktop_bench(backend)).sandbox() as sandbox:
        seen = await inside(sandbox, scripts.BROWSER)
        assert len(seen["titles"]) == 1
        assert "Chromium" in seen["titles"][0]
        assert len(seen["after"]) == 1
        assert (seen["keepers"], seen["again"] < seen["took"]) == (1, True)


@pytest.mark.slow
async def test_a_browser_in_a_crash_loop_is_given_up_for_a_while(backend: DockerBackend) -> None:
    async with (await desktop_bench(backend)).sandbox() as sandbox:
        seen = await inside(sandbox, scripts.CRASH_LOOP)
        assert seen["starts"] == 5
        assert seen["said"] > 100, "white pixels of a text on the wall"
        assert (seen["still"], seen["answers"]) == (0, True)
        assert seen["again"] < 2


@pytest.mark.slow
async def test_a_new_server_has_its_browser(backend: DockerBackend) -> None:
    async with (await desktop_bench(backend)).sandbox() as sandbox:
        seen = await inside(sandbox, scripts.BROWSER_NEW_SERVER)
        assert (len(seen["titles"]), seen["keepers"]) == (1, 1)


@pytest.mark.slow
async def test_chromium_runs_where_no_namespaces_are_to_be_had(backend: DockerBackend) -> None:
    async with (await desktop_bench(backend, "default")).sandbox() as sandbox:
        await inside(sandbox, "print(ensured())")
        seen = await inside(sandbox, scripts.CHROMIUM)
        assert "--no-sandbox" in seen["command"]
        assert "--test-type" in seen["command"]
        assert all(renderer["spaces"] == seen["here"]["spaces"] for renderer in seen["renderers"])


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_session_chromium_and_office_on_gvisor(backend: DockerBackend) -> None:
    async with (await desktop_bench(backend, runtime="runsc-planted")).sandbox() as sandbox:
        assert (await inside(sandbox, scripts.READY))["titles"] == ["panel"]
        started = 'until(lambda: [t for t in titles() if "here" in t], 120)'
        page = "data:text/html,<title>here</title>"
        assert await inside(sandbox, f'launching.start(["chromium", "{page}"])\nprint(json.dumps({started}))')
        office = 'launching.start(["soffice", "--calc"])\nprint(json.dumps(until(lambda: [t for t in titles() if "Calc" in t], 120)))'
        assert await inside(sandbox, office)
