"""Images from a registry: fetched by the gateway with a secret that nobody else sees, checked digest by digest."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from service.domain.credentials import Purpose
from service.domain.images import ImageState
from service.gateway.credentials import Vault
from service.gateway.egress.serving import EgressServing
from service.gateway.front import NoServices
from service.gateway.http_server import HttpServing
from service.gateway.place import OWN, TOKEN, Place
from service.gateway.process import Gateway
from service.gateway.registries import Registries
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.lifecycle.own_side import OwnWay
from service.store import credentials, images, operations, projects
from service.store.rows import OperationRow
from service.store.rows_models import ImageRow
from service.store.sealed_box import OpeningKey
from tests.fixtures.made_images import LAYER, config, layout, sha
from tests.fixtures.registry import Registry, Store
from tests.integration.gateway.bench import GateBench
from tests.integration.gateway.test_control import nothing_found

pytestmark = pytest.mark.asyncio(loop_scope="module")
LOGIN = "robot:hush-hush-9f1c"


class Rig:
    """A gateway with a registry behind it, and what imports from there."""

    def __init__(self, bench: GateBench, place: Place, registry: Registry, store: Store, index: str) -> None:
        self.bench, self.place, self.registry, self.store, self.index = bench, place, registry, store, index
        way = OwnWay(place.directory / OWN, place.directory / TOKEN)
        self.ctx = OperationContext(bench.db, bench.blobs, first_pause_s=0.01, gateway=way)

    async def imported(
        self, *, digest: str | None = None, login: str | None = LOGIN, private: bool = True
    ) -> tuple[ImageRow, OperationRow]:
        reference = f"{self.registry.host}/team/tools@sha256:{digest or self.index}"
        async with self.bench.db.transaction() as tx:
            project = await projects.find_or_create(tx, "images")
            name = f"far-{uuid.uuid4().hex}"
            row, _ = await images.create(tx, project.id, name, reference=reference, private=private)
            if login is not None:
                await credentials.put(tx, "image", project.id, row.id, Purpose.REGISTRY, login)
            operation = await operations.create(tx, project.id, "image_import", {"image_id": row.id}, "bytes")
        await perform(self.ctx, operation.id)
        async with self.bench.db.reading() as tx:
            found, done = await images.load(tx, row.id), await operations.get(tx, project.id, operation.id)
            gone = None if found is None or found.credential_id is None else found.credential_id
            kept = {} if gone is None else await credentials.of_project(tx, project.id, [gone])
        assert found is not None
        assert done is not None
        assert len(kept) == (1 if found.state is ImageState.PENDING and login else 0)
        return found, done


@pytest_asyncio.fixture(loop_scope="module")
async def rig(bench: GateBench, tmp_path: Path) -> AsyncIterator[Rig]:
    document = config([LAYER, LAYER], User="root")
    parts = layout([LAYER, LAYER], document)
    blobs = {name.removeprefix("blobs/sha256/"): data for name, data in parts.items()}
    index = blobs.pop("index.json")
    async with AsyncExitStack() as stack:
        store = stack.enter_context(Store(blobs))
        registry = stack.enter_context(Registry({**blobs, sha(index): index}, store, LOGIN))
        place = Place.take(tmp_path / "gateway", None)
        stack.callback(place.close)
        vault = Vault(bench.db, OpeningKey(bytes(range(32))))
        await vault.register()
        registries = Registries(bench.db, bench.upstream, vault, place.service_token)
        parts_of_gateway = (bench.parts, NoServices(), place, nothing_found, HttpServing(64), EgressServing(bench.db))
        stop = asyncio.Event()
        running = asyncio.create_task(Gateway(*parts_of_gateway, registries=registries).run(stop))
        yield Rig(bench, place, registry, store, sha(index))
        stop.set()
        await running


def _problem(done: OperationRow) -> Any:
    assert done.problem is not None
    return done.problem["type"]


async def test_an_index_its_manifest_and_its_blobs_come_whole(rig: Rig) -> None:
    image, done = await rig.imported()
    assert (done.state, done.problem) == ("succeeded", None)
    assert image.content is not None
    assert [layer.sha256 for layer in image.content.layers] == [sha(LAYER), sha(LAYER)]
    assert image.report["user"] == "root"
    assert image.credential_id is None, "what it was for is done"
    assert not [path for path, shown in rig.store.seen if shown is not None], "a redirect takes no secret along"
    basic = {path.partition("?")[0] for path, shown in rig.registry.seen if (shown or "").startswith("Basic")}
    assert basic == {"/token"}
    said = f"{done.log} {done.result} {image.report}"
    assert LOGIN.partition(":")[2] not in said


async def test_a_wrong_password_is_the_projects_doing(rig: Rig) -> None:
    for login in ("robot:wrong", None):
        image, done = await rig.imported(login=login)
        assert (image.state, image.report["refused"]["type"]) == (ImageState.REFUSED, "registry_denied")
        assert _problem(done) == "registry_denied"


async def test_a_digest_that_is_not_there_and_one_that_does_not_hold(rig: Rig) -> None:
    image, done = await rig.imported(digest="0" * 64)
    assert (image.state, _problem(done)) == (ImageState.REFUSED, "registry_unknown")
    rig.registry.documents[rig.index] += b" "
    image, done = await rig.imported()
    assert (image.state, _problem(done)) == (ImageState.REFUSED, "image_digest_mismatch")


async def test_another_blob_than_the_one_asked_for_is_refused(rig: Rig) -> None:
    rig.store.blobs = {digest: data[:-1] + b"x" for digest, data in rig.store.blobs.items()}
    image, done = await rig.imported()
    assert (image.state, _problem(done)) == (ImageState.REFUSED, "image_digest_mismatch")


async def test_only_an_operators_registry_may_be_at_a_private_address(rig: Rig) -> None:
    image, done = await rig.imported(private=False)
    assert image.state is ImageState.PENDING, "asked again, it may be another address"
    assert (_problem(done), rig.registry.seen) == ("registry_unavailable", [])


async def test_registries_are_for_our_own_processes(rig: Rig) -> None:
    image, _ = await rig.imported()
    path = f"/images/{image.id}/manifests/{rig.index}"
    transport = httpx.AsyncHTTPTransport(uds=str(rig.place.directory / OWN))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", trust_env=False) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            assert (await client.get(path, headers=headers)).status_code == 401
    grant = await rig.bench.grant()
    inside = await rig.bench.client(grant)
    seen = len(rig.registry.seen)
    assert (await inside.get(path)).status_code == 404
    assert len(rig.registry.seen) == seen
