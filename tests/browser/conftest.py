"""A real Chromium before the real API and pages."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from service.api.state import ApiConfig, ApiState
from service.dashboard.app import install
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.notifications import Notifications
from service.store.secret_box import SecretBox
from service.wiring.pages import dashboard_for
from tests.api.apps import app_of
from tests.api.conftest import quiet_logs
from tests.api.helpers import Tenant, make_tenant, served
from tests.browser.heard import Heard, Hearing
from tests.browser.namespace import Namespace, own_namespace

__all__ = ["quiet_logs"]

PORT = 8040
SITE = f"http://127.0.0.1:{PORT}"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Namespace:
    return own_namespace(tmp_path_factory.mktemp("chromium"))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def preview_origin() -> str | None:
    """Setting ``api.preview_origin``; a test may be parametrised by another one."""
    return None


@pytest.fixture
async def site(
    namespace: Namespace, database_url: str, tmp_path: Path, heard: Heard, preview_origin: str | None
) -> AsyncIterator[Tenant]:
    """A project whose pages are served where the browser is, at ``SITE``."""
    db = Database(database_url, pool_size=8)
    async with Notifications(database_url) as notifications:
        blobs, box = BlobStore(tmp_path / "blobs"), SecretBox(bytes(32))
        state = ApiState(
            db, notifications, blobs, ApiConfig(public_url=SITE, preview_origin=preview_origin), secrets=box
        )
        app = app_of(state)
        install(app, dashboard_for(state))
        app.add_middleware(Hearing, heard=heard)
        sock = namespace.listen(PORT)
        async with make_tenant(state, app, "alpha") as tenant, served(app, sock):
            yield tenant
    await db.close()


@pytest.fixture
async def browser(namespace: Namespace) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(executable_path=namespace.browser, args=ARGUMENTS)
        yield found
        await found.close()


@pytest.fixture
def on_purpose() -> tuple[str, ...]:
    """What a test asks for on purpose (an unknown page, no network) is told on the console too."""
    return ("Failed to load resource",)


@pytest.fixture
async def page(browser: Browser, site: Tenant, on_purpose: tuple[str, ...]) -> AsyncIterator[Page]:
    """A page of a fresh profile; whatever its console says against us fails the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    one = await context.new_page()
    complaints: list[str] = []
    one.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    one.on("pageerror", lambda e: complaints.append(str(e)))
    yield one
    await context.close()
    assert [c for c in complaints if not any(text in c for text in on_purpose)] == []
