"""The API over the real store: projects of their own for each test, in one database (that tenancy holds is tested)."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import structlog

from service.api.state import ApiConfig, ApiState
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.notifications import Notifications
from service.store.secret_box import SecretBox
from service.supervisor.postgres import EmbeddedPostgres
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, make_tenant, served
from tests.fixtures.postgres import database_template, new_database, postgres_server

__all__ = ["database_template", "postgres_server"]


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    """Access logs go nowhere but to tests that capture them."""
    structlog.configure(processors=[structlog.testing.LogCapture()], cache_logger_on_first_use=False)
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def shared_url(postgres_server: EmbeddedPostgres, database_template: str) -> Iterator[str]:
    with new_database(postgres_server, database_template) as url:
        yield url


@pytest.fixture
async def state(shared_url: str, tmp_path: Path) -> AsyncIterator[ApiState]:
    db = Database(shared_url, pool_size=8)
    config = ApiConfig(public_url=BASE, max_json_bytes=1 << 20)
    async with Notifications(shared_url) as notifications:
        yield ApiState(db, notifications, BlobStore(tmp_path / "blobs"), config, secrets=SecretBox(bytes(32)))
    await db.close()


@pytest.fixture
async def tenant(state: ApiState) -> AsyncIterator[Tenant]:
    """A project with a token of all scopes, and a client that uses it."""
    async with make_tenant(state, app_of(state), "alpha") as one:
        yield one


@pytest.fixture
async def other(state: ApiState) -> AsyncIterator[Tenant]:
    async with make_tenant(state, app_of(state), "beta") as one:
        yield one


@pytest.fixture
async def anonymous(state: ApiState) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app_of(state), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


@pytest.fixture
async def url(state: ApiState) -> AsyncIterator[str]:
    """Base URL of the API served by uvicorn on a free port: for what a real connection shows only."""
    async with served(app_of(state)) as base:
        yield base
