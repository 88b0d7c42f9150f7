"""Composition root: settings → store, sandboxes, lifecycle → api, worker, grader, supervisor."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import uvicorn

from service import logs
from service.api import schema
from service.api.app import create_app
from service.api.auth import page_caller
from service.api.bridge import BridgeClient
from service.api.rate_limits import Rates
from service.api.server import uvicorn_config
from service.api.state import ApiConfig, ApiState
from service.dashboard.app import install as install_pages
from service.dashboard.visitor import Dashboard
from service.domain.grants import GrantedModel
from service.gateway.body_keeper import BodyKeeper
from service.gateway.breaker import Gates
from service.gateway.cassettes.replay import StoredTapes
from service.gateway.credentials import Vault
from service.gateway.deployment_keys import read_deployment_keys
from service.gateway.egress.serving import EgressServing
from service.gateway.forwarding import Parts
from service.gateway.http_server import HttpServing
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.place import KEY, OWN, TOKEN, Place
from service.gateway.preload import preload
from service.gateway.pricing import cost_of
from service.gateway.probing import Prober
from service.gateway.process import Gateway
from service.gateway.services import GatewayServices
from service.gateway.upstream import Upstream
from service.lifecycle.context import Context
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.grade import GradeContext
from service.lifecycle.operations.contract import OperationContext, OwnWay
from service.lifecycle.ports import Sandboxes
from service.local_access import ensure_client_file
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.facts import HostFacts
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.sandboxes.docker.warm_pool import WarmPool
from service.settings import Settings
from service.store import blob_refs, changes, idempotency, migrate, operations, projects, run_models, tokens
from service.store.blob_files import share
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.events import EventLog
from service.store.notifications import Notifications
from service.store.sealed_box import OpeningKey
from service.store.secret_box import SecretBox
from service.supervisor.account import GATEWAY_USER, become, require_reachable, system_account
from service.supervisor.children import ChildSpec
from service.supervisor.postgres import EmbeddedPostgres
from service.supervisor.serve import serve as supervise
from service.workers.bridge import BridgePlace
from service.workers.gateway_link import GatewayLink
from service.workers.gauge import Machine, MachineGauge, Reserve
from service.workers.grader import grading_queue
from service.workers.heartbeat import Beating
from service.workers.host import HostConfig, run_host
from service.workers.integrity import integrity_queue
from service.workers.jobs import JobsConfig, run_jobs
from service.workers.operations import operation_queue
from service.workers.watchdog import Watching
from service.workers.webhooks import Sending, WebhookSender

T = TypeVar("T")


def run_serve(settings: Settings) -> None:
    """Run everything until a signal says stop."""
    logs.configure(settings.log_level)
    port = settings.api.port or _free_port(settings.api.host)
    url = settings.api.public_url or f"http://{settings.api.host}:{port}"
    settings.deployment_id()
    env = settings.child_environment(API__PORT=str(port), DATA_DIR=str(settings.data_dir))
    children = [ChildSpec(n, [sys.executable, "-m", "service", n], env) for n in ("api", "worker", "grader")]
    with_keys = settings.child_environment(provider_keys=True, DATA_DIR=str(settings.data_dir))
    children.insert(1, ChildSpec("gateway", [sys.executable, "-m", "service", "gateway"], with_keys))

    def prepare(database_url: str) -> None:
        migrate.upgrade(database_url)
        asyncio.run(ensure_client_file(database_url, settings.data_dir / "client.json", url))

    def ready(_: str) -> None:
        print(f"Workstead: {url} (token in {settings.data_dir / 'client.json'})", flush=True)  # noqa: T201

    given = settings.require_database_url() if settings.database_url else None
    supervise(settings.data_dir, children, prepare, given, ready)


def run_api(settings: Settings) -> None:
    _run(settings, _api)


def run_worker(settings: Settings) -> None:
    _run(settings, _worker)


def run_gateway(settings: Settings) -> None:
    _run(settings, _gateway)


def run_grading(settings: Settings) -> None:
    _run(settings, _grader)


def run_migrate(settings: Settings) -> None:
    migrate.upgrade(settings.require_database_url())


def mint_token(settings: Settings, project: str, scopes: list[str], note: str) -> str:
    """Return a new token's secret. Without a database URL the embedded PostgreSQL of the data directory is used."""

    async def mint(db: Database) -> str:
        async with db.transaction() as tx:
            owner = await projects.find_or_create(tx, project)
            return (await tokens.mint(tx, owner.id, scopes, note))[1]

    return asyncio.run(_with_database(settings, mint))


def collect_garbage(settings: Settings) -> int:
    """Remove what is old: uploads never used, idempotency keys, tombstones, operations; and blobs that nothing needs.

    Returns the bytes freed.
    """

    async def collect(db: Database) -> int:
        async with db.transaction() as tx:
            await idempotency.purge(tx)
            await changes.purge(tx)
            await operations.purge(tx)
            await blob_refs.drop_old_uploads(tx)
        return await BlobStore(settings.blob_dir).gc(db)

    return asyncio.run(_with_database(settings, collect))


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run ``work`` on the database of the settings, or on the embedded one that ``serve`` is running here."""
    url = settings.require_database_url() if settings.database_url else EmbeddedPostgres(settings.data_dir).url
    db = Database(url, pool_size=1)
    try:
        return await work(db)
    finally:
        await db.close()


def openapi(directory: Path, *, only_check: bool) -> int:
    """Write ``api_schema/``, or say which files differ from what the code would write (exit code 1)."""
    if not only_check:
        schema.dump(directory)
        return 0
    stale = schema.check(directory)
    for line in stale:
        print(line, file=sys.stderr)  # noqa: T201
    return 1 if stale else 0


async def _api(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await _database(settings, stack)
    url = settings.api.public_url or f"http://{settings.api.host}:{settings.api.port}"
    config = ApiConfig(
        public_url=url,
        cors_origins=tuple(settings.api.cors_origins),
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
        db, notifications, blobs, config, reach=_crash_points(settings).reach, secrets=box,
        bridge=BridgeClient(settings.bridge.secret),
    )  # fmt: skip
    app = create_app(state)
    install_pages(app, Dashboard(db, page_caller))
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


async def _worker(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await _database(settings, stack)
    blobs = BlobStore(settings.blob_dir)
    options = settings.worker
    backend = DockerBackend(
        settings.data_dir, settings.deployment_id(), options.docker_url, options.images, runtimes=options.runtimes
    )
    stack.push_async_callback(backend.close)
    warm = WarmPool(backend, per_key=options.warm_per_key, total=options.warm_total)
    stack.push_async_callback(warm.close)
    context = Context(
        db, notifications, EventLog(blobs), blobs, Sandboxes(backend), settings.data_dir / "spool",
        warm=warm, models=await _gateway_link(settings, stack), crash=_crash_points(settings),
    )  # fmt: skip
    config = HostConfig(
        options.host_id, options.slots, settings.data_dir, backend.images.offered,
        facts={"untrusted_runtimes": list(await backend.untrusted_runtimes())},
        bridge=BridgePlace.below(
            settings.data_dir, options.host_id, settings.bridge.address, settings.bridge.secret
        ),
        gauge=await _gauge(settings, backend, stack),
        beating=Beating(every_s=options.heartbeat_s),
        watching=Watching(stale_s=options.stale_s, lost_s=options.lost_s),
    )  # fmt: skip
    await run_host(context, config, _signalled())


async def _gateway_link(settings: Settings, stack: AsyncExitStack) -> GatewayLink:
    link = GatewayLink(settings.gateway_dir)
    linking = asyncio.create_task(link.run(), name="gateway link")
    stack.callback(linking.cancel)
    return link


async def _gateway(settings: Settings, stack: AsyncExitStack) -> None:
    """Take what only root can, then give root up, for good, before the first request is served."""
    account, options = system_account(GATEWAY_USER), settings.gateway
    require_reachable(settings.data_dir, account, GATEWAY_USER, "the gateway")
    place = Place.take(settings.gateway_dir, (account.uid, account.gid) if account.switch else None)
    stack.callback(place.close)
    key = OpeningKey.at(place.directory / KEY)
    keys = read_deployment_keys(settings.models.credentials_file, settings.models.credentials)
    blobs = BlobStore(settings.blob_dir)
    bodies = BodyKeeper(blobs)
    stack.callback(bodies.close)
    if account.switch:
        share(settings.blob_dir, account.gid)
    db, notifications = await _database(settings, stack)
    vault, gates = Vault(db, key, keys), Gates(db, notifications)
    await vault.register()
    limits = GatewayLimits(
        max_body_bytes=options.max_body_bytes,
        stalled_s=options.stalled_s,
        connections_per_run=options.connections_per_run,
        replay_time_scale=options.replay_time_scale,
    )
    upstream = Upstream(limits, allow_private=settings.models.allow_private)
    stack.push_async_callback(upstream.close)
    public = None
    if options.public_port is not None:
        public = socket.create_server((options.public_host, options.public_port))
        stack.callback(public.close)

    async def find(project_id: str, names: list[str]) -> list[GrantedModel]:
        async with db.reading() as tx:
            return await run_models.granted_models(tx, project_id, names)

    tapes = StoredTapes(db, blobs)
    parts = Parts(Ledger(db, settings.worker.host_id), upstream, gates, vault, cost_of, limits, bodies, tapes)
    gates.probe_with(Prober(db, parts))
    serving = HttpServing(limits.connections_per_run)
    preload()
    become(account)
    await Gateway(
        parts,
        GatewayServices(db, upstream, vault, limits),
        place,
        find,
        serving,
        EgressServing(db),
        public,
        beside=(gates.run,),
    ).run(_signalled())


async def _gauge(settings: Settings, backend: DockerBackend, stack: AsyncExitStack) -> MachineGauge:
    engine, options = HostFacts.of(await backend.engine.info()), settings.worker
    disks = {"data": settings.data_dir} | ({"engine": Path(engine.engine_root)} if engine.engine_root else {})
    machine = Machine(engine.memory_bytes, engine.cpus, disks, metadata.version("workstead"))
    reserve = Reserve(
        options.memory_fraction, options.disk_watermark_fraction, options.disk_watermark_bytes, options.disk_overcommit
    )
    gauge = MachineGauge(machine, reserve)
    stack.callback(gauge.close)
    return gauge


async def _grader(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await _database(settings, stack)
    rooms = await stack.enter_async_context(_rooms(settings))
    blobs, crash = BlobStore(settings.blob_dir), _crash_points(settings)
    context = GradeContext(db, blobs, crash=crash, rooms=rooms)
    queues = [
        grading_queue(context, settings.grader.concurrency),
        integrity_queue(context.for_report),
        operation_queue(OperationContext(db, blobs, crash, gateway=_own_way(settings)), settings.grader.operations),
    ]
    await run_jobs(db, notifications, queues, JobsConfig(), _signalled())


def _own_way(settings: Settings) -> OwnWay:
    return OwnWay(settings.gateway_dir / OWN, settings.gateway_dir / TOKEN)


def _rooms(settings: Settings) -> AbstractAsyncContextManager[EngineRooms | None]:
    config = RoomsConfig(settings.grader.rooms, tuple(settings.grader.code_runtimes))
    worker = settings.worker
    return open_rooms(
        settings.data_dir, settings.deployment_id(), config, docker_url=worker.docker_url, images=worker.images
    )


def _signalled() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _database(settings: Settings, stack: AsyncExitStack) -> tuple[Database, Notifications]:
    url = settings.require_database_url()
    await asyncio.to_thread(migrate.check, url)
    db = Database(url)
    stack.push_async_callback(db.close)
    return db, await stack.enter_async_context(Notifications(url))


def _crash_points(settings: Settings) -> CrashPoints:
    return CrashPoints(settings.data_dir if settings.crash_tests else None)


def _run(settings: Settings, process: Callable[[Settings, AsyncExitStack], Awaitable[None]]) -> None:
    logs.configure(settings.log_level)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await process(settings, stack)

    asyncio.run(run())


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


COMMANDS: dict[str, Callable[[Settings], None]] = {
    "serve": run_serve, "api": run_api, "worker": run_worker, "gateway": run_gateway, "grader": run_grading,
    "migrate": run_migrate,
}  # fmt: skip
