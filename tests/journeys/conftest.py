"""One running service for all journeys of a session (under xdist: of each worker), and a scripted provider per module.

A journey brings its own tasks, agents and models, waits for its runs, and undoes what it sets; it may kill or restart the
service. What must not be shared (crash points, a service that ends) starts one of its own.
"""

import json
from collections.abc import Iterator

import pytest

from service.models.scripted.server import Scripted
from tests.docker.hostile import built_image, remove_image
from tests.journeys.models import Lab
from tests.journeys.stack import Stack, stack

JUDGE_CALLS = 16
SETTINGS = {
    "WORKSTEAD_MODELS__ALLOW_PRIVATE": "true",
    "WORKSTEAD_WEBHOOKS__ALLOW_PRIVATE": "true",
    "WORKSTEAD_GRADER__JUDGE_CALLS": str(JUDGE_CALLS),
}
# What tasks of other collections bring: their own folders, user, variables and entry point, and no Python.
FOREIGN = [
    "USER root",
    "RUN useradd --create-home app && mkdir /app && echo data > /app/data.txt",
    "ENV LD_LIBRARY_PATH=/nowhere PYTHONHOME=/nowhere NODE_OPTIONS=--bad HOME=/home/app",
    "WORKDIR /app",
    "USER app",
    'ENTRYPOINT ["/bin/false"]',
]


@pytest.fixture(scope="session")
def service() -> Iterator[Stack]:
    """The shared service, with an environment ``foreign``. Nothing may be left when it ends, whatever happened to it."""
    image = built_image(Stack.image("root"), FOREIGN)
    try:
        with stack(**SETTINGS, WORKSTEAD_WORKER__IMAGES=json.dumps({"foreign": image})) as running:
            yield running
            running.stop()
            assert not running.leftovers().all()
    finally:
        remove_image(image)


@pytest.fixture(scope="module")
def there(service: Stack) -> Iterator[Lab]:
    with Scripted() as provider:
        yield Lab(service, provider)
