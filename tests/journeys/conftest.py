"""One running service per module of journeys: what a journey leaves must not matter to the next."""

from collections.abc import Iterator

import pytest

from tests.journeys.stack import Stack


@pytest.fixture(scope="module")
def service() -> Iterator[Stack]:
    with Stack() as running:
        yield running
