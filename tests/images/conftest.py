"""The real images, built once for the session."""

from collections.abc import Iterator

import pytest

from sandbox_images.build import Table, build
from sandbox_images.build_host import this_machine
from sandbox_images.catalogue import load
from sandbox_images.engine import Engine
from tests.needs import needs_docker


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    needs_docker()
    opened = Engine()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def images(engine: Engine) -> Table:
    """{name: {tag, id}} of everything in images.toml; what is missing is built."""
    return build(engine, load(), this_machine())
