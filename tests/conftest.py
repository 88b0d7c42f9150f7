"""Markers from folders, needs checked before a test starts, and no sockets in unit tests."""

import asyncio
import gc
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket
import structlog
from xdist.remote import Producer

from tests.fixtures.compiled import share_compiled
from tests.fixtures.postgres import (
    data_dir,
    database_template,
    database_url,
    empty_database_url,
    empty_dir,
    made_cluster,
    postgres_server,
    reused_database,
)
from tests.needs import needs_browser, needs_docker
from tests.scheduling import InLanes, in_order, scheduler

__all__ = [
    "data_dir", "database_template", "database_url", "empty_database_url", "empty_dir", "made_cluster",
    "postgres_server", "reused_database",
]  # fmt: skip

_HERE = Path(__file__).parent
_FOLDER_MARKERS = {
    "docker": ("docker",),
    "images": ("docker", "images"),
    "journeys": ("docker",),
    "browser": ("browser",),
}

_LONGER = (
    "unit/sandboxes/launcher/", "unit/tools/test_mutants.py", "unit/evidence/", "unit/workstead/test_doctor.py",
    "unit/supervisor/", "api/test_agreement.py", "api/test_events.py", "api/test_changes.py", "api/test_operations.py",
    "api/test_benchmarks.py", "api/test_tenancy.py", "api/test_task_archives.py", "contracts/",
)  # fmt: skip


def pytest_configure() -> None:
    # Part of parameters' names: workers that run tests side by side must draw the same one.
    os.environ.setdefault("CHAOS_SEED", str(random.SystemRandom().randrange(1, 1 << 32)))


def pytest_sessionstart() -> None:
    # Python 3.11 would make a loop that nobody closes when pytest-asyncio asks which one was set before.
    asyncio.set_event_loop(None)
    share_compiled()
    # Without the values of each frame's variables, which take longer than what most tests do.
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    # A shell starts background jobs with these ignored, and the programs under test would inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in _FOLDER_MARKERS.get(_folder(item), ()):
            item.add_marker(name)
        if item.path.is_relative_to(_HERE) and item.path.relative_to(_HERE).as_posix().startswith(_LONGER):
            item.add_marker("longer")
    in_order(items)


def pytest_collection_finish() -> None:
    # Modules and tests stay to the end: each search for garbage would go through all of them, a tenth of the time in all.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> InLanes | None:
    return scheduler(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker"):
        needs_docker()
    if item.get_closest_marker("browser"):
        needs_browser()


@pytest.fixture(autouse=True)
def _no_sockets_in_unit_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    node: pytest.Item = request.node
    if _folder(node) != "unit":
        yield
        return
    # Unix sockets stay: an event loop wakes itself through a pair of them.
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
