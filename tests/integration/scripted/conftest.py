from collections.abc import Iterator

import pytest

from service.models.scripted.server import Scripted


@pytest.fixture(scope="module")
def provider() -> Iterator[Scripted]:
    with Scripted() as running:
        yield running
