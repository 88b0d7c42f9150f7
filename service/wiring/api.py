"""The API, the pages, and the sender of webhooks."""

import argparse
import asyncio
import contextlib
from contextlib import AsyncExitStack

import uvicorn

from service.api.app import create_app
from service.api.bridge import BridgeClient
from service.api.rate_limits import Rates
from service.api.server import uvicorn_config
from service.api.state import ApiConfig, ApiState
from service.dashboard.app import install
from service.settings import Settings
from service.store.blobs import BlobStore
from service.store.secret_box import SecretBox
from service.wiring.pages import dashboard_for
from service.wiring.process import crash_points, database, run_process
from service.workers.webhooks import Sending, WebhookSender


def run(_: argparse.Namespace) -> None:
    run_process(_api)


async def _api(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await database(settings, stack)
    url = settings.api.public_url or f"http://{settings.api.host}:{settings.api.port}"
    config = ApiConfig(
        public_url=url,
        cors_origins=tuple(settings.api.cors_origins),
        preview_origin=settings.api.preview_origin,
        max_json_bytes=settings.api.max_json_bytes,
        max_blob_bytes=settings.api.max_blob_bytes,
        max_archive_bytes=settings.api.max_archive_bytes,
        rates=Rates(**settings.api.rates.model_dump()),
        private_webhooks=settings.webhooks.allow_private,
        private_upstreams=settings.models.allow_private,
    )
    box = SecretBox.at(settings.data_dir / "secrets" / "webhooks.key")
    blobs = BlobStore(settings.blob_dir)
    state = ApiState(
        db, notifications, blobs, config, reach=crash_points(settings).reach, secrets=box,
        bridge=BridgeClient(settings.bridge.secret),
    )  # fmt: skip
    app = create_app(state)
    install(app, dashboard_for(state))
    server = uvicorn.Server(uvicorn_config(app, settings.api.host, settings.api.port))
    sender = WebhookSender(db, notifications, box, Sending(**settings.webhooks.model_dump()))
    await _serve_and_send(server, sender)


async def _serve_and_send(server: uvicorn.Server, sender: WebhookSender) -> None:
    """Serve until a signal; a sender that fails takes the process with it, and whoever started it starts it again."""
    sending = asyncio.create_task(sender.run(), name="webhooks")
    serving = asyncio.create_task(server.serve(), name="server")
    await asyncio.wait({sending, serving}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    sending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sending
