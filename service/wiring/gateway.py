"""The gateway: the way out to the models of this host's runs."""

import argparse
import socket
from contextlib import AsyncExitStack

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
from service.gateway.place import KEY, Place
from service.gateway.preload import preload
from service.gateway.probing import Prober
from service.gateway.process import Gateway
from service.gateway.registries import Registries
from service.gateway.services import GatewayServices
from service.gateway.upstream import Upstream
from service.models.pricing import cost_of
from service.settings import Settings
from service.store import run_models
from service.store.blob_files import share
from service.store.blobs import BlobStore
from service.store.sealed_box import OpeningKey
from service.supervisor.account import GATEWAY_USER, become, require_reachable, system_account
from service.wiring.process import database, run_process, signalled


def run(_: argparse.Namespace) -> None:
    run_process(_gateway)


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
    db, notifications = await database(settings, stack)
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
        async with db.statement() as tx:
            return await run_models.granted_models(tx, project_id, names)

    tapes = StoredTapes(db, blobs)
    ledger = Ledger(db, settings.worker.host_id)
    parts = Parts(ledger, upstream, gates, vault, cost_of, limits, bodies, tapes)
    gates.probe_with(Prober(db, parts))
    serving = HttpServing(limits.connections_per_run)
    preload()
    become(account)
    await Gateway(
        parts,
        GatewayServices(db, ledger, upstream, vault, limits, bodies, tapes),
        place,
        find,
        serving,
        EgressServing(db),
        public,
        registries=Registries(db, upstream, vault, place.service_token),
        beside=(gates.run,),
    ).run(signalled())
