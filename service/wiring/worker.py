"""The worker: sandboxes on this host."""

import argparse
import asyncio
from contextlib import AsyncExitStack
from importlib import metadata
from pathlib import Path

from service.lifecycle.context import Context
from service.lifecycle.ports import Sandboxes
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.facts import HostFacts
from service.sandboxes.docker.image_store import ImageStore
from service.sandboxes.docker.warm_pool import WarmPool
from service.settings import Settings
from service.store.blobs import BlobStore
from service.store.events import EventLog
from service.wiring.process import crash_points, database, run_process, signalled
from service.workers.bridge import BridgePlace
from service.workers.gateway_link import GatewayLink
from service.workers.gauge import Machine, MachineGauge, Reserve
from service.workers.heartbeat import Beating
from service.workers.host import HostConfig, run_host
from service.workers.watchdog import Watching


def run(_: argparse.Namespace) -> None:
    run_process(_worker)


async def _worker(settings: Settings, stack: AsyncExitStack) -> None:
    db, notifications = await database(settings, stack)
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
        warm=warm, models=await _gateway_link(settings, stack), crash=crash_points(settings),
    )  # fmt: skip
    stack.push_async_callback(context.desktops.close)
    config = HostConfig(
        options.host_id, options.slots, settings.data_dir, backend.images.offered,
        facts={"untrusted_runtimes": list(await backend.untrusted_runtimes())},
        brought=ImageStore(backend.engine, backend.deployment, blobs.path, warm.forget),
        bridge=BridgePlace.below(
            settings.data_dir, options.host_id, settings.bridge.address, settings.bridge.secret
        ),
        gauge=await _gauge(settings, backend, stack),
        beating=Beating(every_s=options.heartbeat_s),
        watching=Watching(stale_s=options.stale_s, lost_s=options.lost_s),
    )  # fmt: skip
    await run_host(context, config, signalled())


async def _gateway_link(settings: Settings, stack: AsyncExitStack) -> GatewayLink:
    link = GatewayLink(settings.gateway_dir)
    linking = asyncio.create_task(link.run(), name="gateway link")
    stack.callback(linking.cancel)
    return link


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
