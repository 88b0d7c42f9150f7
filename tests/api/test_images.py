"""Images that a project brings: looked at part by part before any engine sees them, refused with a type, told in words."""

import gzip
import json
import tarfile
from functools import cache
from typing import Any

import pytest
from sqlalchemy import text

from service.store import credentials, hosts, images
from service.store.rows import HostRow
from service.store.sealed_box import OpeningKey
from tests.api.helpers import Tenant
from tests.api.test_benchmarks import work_off
from tests.fixtures.made_images import LAYER, config, laid_out, member, saved, sha, tar


@pytest.fixture(autouse=True)
async def no_host_of_other_tests(tenant: Tenant) -> None:
    """An import waits for the hosts that are up, and nobody loads anything for those that other tests left."""
    async with tenant.state.db.transaction() as tx:
        await tx.execute(text("UPDATE hosts SET state = 'lost'"))


async def brought(one: Tenant, archive: bytes, name: str = "mine") -> Any:
    """Upload, import, and return the image as it then is."""
    made = await one.post("/v1/images", {"name": name, "archive": await one.blob(archive)})
    assert (made["state"], made["report"]) == ("pending", {})
    await work_off(one)
    return await one.get(f"/v1/images/{made['id']}")


async def operation_of(one: Tenant, image: Any) -> Any:
    return await one.get(f"/v1/operations/{image['operation_id']}")


async def test_an_image_is_taken_with_a_list_of_what_is_overridden(tenant: Tenant) -> None:
    document = config(
        [LAYER], User="root", Entrypoint=["/bin/x", "--y"], Volumes={"/data": {}}, Env=["LD_PRELOAD=/x", "SECRET=1"]
    )
    image = await brought(tenant, saved([LAYER], document))
    assert image["state"] == "ready"
    report = image["report"]
    assert report["image_id"] == f"sha256:{sha(document)}"
    assert report["size_bytes"] == len(LAYER) + len(document)
    assert (report["platform"], report["layers"], report["user"]) == ("linux/amd64", 1, "root")
    assert (report["files"], report["privileged"], report["privileged_names"]) == (2, 1, ["/usr/sudo"])
    told = "\n".join(report["overridden"])
    assert "USER root: everything runs as 10001:10001" in told
    assert "ENTRYPOINT /bin/x --y: never run" in told
    assert "VOLUME /data: a small scratch folder" in told
    assert "ENV LD_PRELOAD SECRET: emptied" in told
    assert "1 setuid, setgid or capable files (/usr/sudo …)" in told
    done = await operation_of(tenant, image)
    assert (done["state"], done["unit"]) == ("succeeded", "bytes")
    assert done["result"] == {"image_id": image["id"], "size_bytes": report["size_bytes"], "hosts": []}
    async with tenant.state.db.reading() as tx:
        kept = text("SELECT digest FROM blob_refs WHERE owner_kind = 'image' AND owner_id = :id")
        assert {*(await tx.execute(kept, {"id": image["id"]})).scalars()} == {sha(document), sha(LAYER)}


async def test_layouts_and_packed_archives_are_the_same_image(tenant: Tenant) -> None:
    document = config([LAYER, LAYER])
    links = tar(
        member("a/layer.tar", LAYER), member("b/layer.tar", kind=tarfile.SYMTYPE, link="../a/layer.tar"),
        member("c.json", document),
        member("manifest.json", json.dumps([{"Config": "c.json", "Layers": ["a/layer.tar", "b/layer.tar"]}]).encode()),
    )  # fmt: skip
    archives = [saved([LAYER, LAYER], document), laid_out([LAYER, LAYER], document), links, gzip.compress(links)]
    found = [await brought(tenant, archive, f"mine-{n}") for n, archive in enumerate(archives)]
    assert [image["state"] for image in found] == ["ready"] * 4, [image["report"] for image in found]
    assert len({json.dumps(image["report"]) for image in found}) == 1


def _hostile_layers() -> dict[str, bytes]:
    out = member("way", kind=tarfile.SYMTYPE, link="../..")
    return {
        "a name with dots": tar(member("usr/../../etc/passwd", b"x")),
        "an absolute name": tar(member("/etc/passwd", b"x")),
        "a hard link out": tar(member("shadow", kind=tarfile.LNKTYPE, link="../../etc/shadow")),
        "through a link that leads out": tar(out, member("way/etc/passwd", b"x")),
        "a whiteout of what is above": tar(member("usr/.wh...", b"")),
        "a sparse file": tar(member("holes", kind=b"S")),
        "no tar at all": b"x" * 1024,
        "cut off": LAYER[:700],
    }


@pytest.mark.parametrize("what", [*_hostile_layers()])
async def test_a_layer_that_reaches_out_is_refused_by_number(tenant: Tenant, what: str) -> None:
    layers = [LAYER, _hostile_layers()[what]]
    for archive in (saved(layers, config(layers)), laid_out(layers, config(layers))):
        image = await brought(tenant, archive, f"img-{sha(archive)[:8]}")
        refused = image["report"]["refused"]
        assert (image["state"], refused["type"], refused["layer"]) == ("refused", "image_layer_refused", 2), refused
        operation = await operation_of(tenant, image)
        assert operation["state"] == "failed"
        assert operation["problem"]["type"] == "urn:workstead:problem:image_layer_refused"


@cache
def _hostile_archives() -> dict[str, tuple[bytes, str]]:
    good = config([LAYER])
    twice = tar(member("manifest.json", b"[]"), member("manifest.json", b"[{}]"))
    huge = tarfile.TarInfo("manifest.json")
    huge.size = 20 << 30
    return {
        "a member that leads out": (tar(member("../../etc/cron.d/x", b"x")), "archive_unsafe_path"),
        "a link that leads out": (
            tar(member("0/layer.tar", kind=tarfile.SYMTYPE, link="../../etc/passwd")),
            "archive_unsafe_path",
        ),
        "a manifest that points elsewhere": (saved([LAYER], good, Config="../../etc/passwd"), "image_malformed"),
        "a layer that is not there": (saved([LAYER], good, Layers=["9/layer.tar"]), "image_malformed"),
        "a name for two members": (twice, "archive_duplicate_path"),
        "a device": (tar(member("dev", kind=tarfile.CHRTYPE)), "archive_unsafe_entry"),
        "the wrong processor": (saved([LAYER], config([LAYER], architecture="arm64")), "image_wrong_platform"),
        "the wrong system": (saved([LAYER], config([LAYER], os="windows")), "image_wrong_platform"),
        "an index without ours": (laid_out([LAYER], good, architecture="s390x"), "image_wrong_platform"),
        "another layer than named": (saved([LAYER], config([tar()])), "image_digest_mismatch"),
        "a layer too many": (saved([LAYER, LAYER], good), "image_malformed"),
        "a task instead": (tar(member("task.toml", b"")), "image_malformed"),
        "two images": (tar(member("manifest.json", b"[{}, {}]")), "image_malformed"),
        "a manifest of nesting": (tar(member("manifest.json", b"[" * 100_000)), "image_malformed"),
        "a size of 20 GiB": (huge.tobuf(), "archive_limit"),
        "a bomb": (gzip.compress(saved([bytes(100 << 20)], good), 6), "archive_limit"),
        "a dangerous WORKDIR": (saved([LAYER], config([LAYER], WorkingDir="/proc/self/fd/8")), "image_refused"),
        "a VOLUME over ours": (saved([LAYER], config([LAYER], Volumes={"/opt/kit/x": {}})), "image_refused"),
        "no archive": (b"#!/bin/sh\n" * 100, "archive_malformed"),
    }


@pytest.mark.parametrize("what", [*_hostile_archives()])
async def test_an_archive_that_is_no_image_is_refused_with_a_type(tenant: Tenant, what: str) -> None:
    archive, expected = _hostile_archives()[what]
    image = await brought(tenant, archive)
    assert (image["state"], image["report"]["refused"]["type"]) == ("refused", expected), image["report"]
    async with tenant.state.db.reading() as tx:
        kept = text("SELECT count(*) FROM blob_refs WHERE owner_kind = 'image' AND owner_id = :id")
        assert (await tx.execute(kept, {"id": image["id"]})).scalar_one() == 0
    left = list((tenant.state.blobs.root / "tmp").iterdir())
    assert left == [], "what was staged is gone"


async def test_one_image_per_name_and_what_is_brought_must_be_there(tenant: Tenant, other: Tenant) -> None:
    archive = saved([LAYER], config([LAYER]))
    image = await brought(tenant, archive)
    again = await tenant.post("/v1/images", {"name": "mine", "archive": image["archive"]}, 200)
    assert (again["id"], again["operation_id"]) == (image["id"], image["operation_id"])
    unlike = {"name": "mine", "archive": await tenant.blob(b"other")}
    assert (await tenant.post("/v1/images", unlike, 409))["type"].endswith(":image_exists")
    theirs = await other.post("/v1/images", {"name": "mine", "archive": image["archive"]}, 422)
    assert theirs["type"].endswith(":missing_blobs"), "a digest is no way to somebody else's bytes"
    for wrong in (
        {},
        {"archive": "0" * 64, "reference": f"r.example.com/a@sha256:{'0' * 64}"},
        {"reference": "r.example.com/a:latest"},
        {"reference": f"127.0.0.1:5000/a@sha256:{'0' * 64}"},
        {"reference": f"r.example.com/a/../b@sha256:{'0' * 64}"},
        {"archive": image["archive"], "username": "u", "secret": "s"},
        {"reference": f"r.example.com/a@sha256:{'0' * 64}", "secret": "s"},
    ):
        await tenant.post("/v1/images", {"name": "wrong", **wrong}, 422)
    assert [one["name"] for one in (await tenant.get("/v1/images"))["data"]] == ["mine"]


async def test_a_registrys_secret_is_sealed_and_given_to_nobody(tenant: Tenant) -> None:
    key = OpeningKey(bytes(range(32)))
    async with tenant.state.db.transaction() as tx:
        await credentials.register_key(tx, key.id, key.public)
    reference = f"r.example.com/team/a@sha256:{'0' * 64}"
    body = {"name": "far", "reference": reference, "username": "robot", "secret": "hush-hush"}
    made = await tenant.post("/v1/images", body)
    assert (made["has_credential"], made["reference"]) == (True, reference)
    async with tenant.state.db.reading() as tx:
        row = await images.load(tx, made["id"])
        assert row is not None
        kept = await credentials.load(tx, str(row.credential_id))
    assert kept is not None
    assert key.open(kept.sealed, kept.id) == b"robot:hush-hush"
    seen = [made, await tenant.get(f"/v1/images/{made['id']}"), await operation_of(tenant, made)]
    assert "hush" not in json.dumps(seen)
    assert (await tenant.client.delete(f"/v1/images/{made['id']}")).status_code == 204
    async with tenant.state.db.reading() as tx:
        assert await credentials.load(tx, kept.id) is None


async def test_tasks_and_scaffolds_name_images_and_only_ready_ones_run(tenant: Tenant, other: Tenant) -> None:
    made = await tenant.post(
        "/v1/images", {"name": "mine", "archive": await tenant.blob(saved([LAYER], config([LAYER])))}
    )
    agent = await tenant.agent()
    by_name = await tenant.task(environment="mine", name="t/name")
    by_id = await tenant.task(environment=made["id"], name="t/id")
    early = await tenant.post("/v1/runs", {"task": by_name["id"], "agent": agent["id"]}, 409)
    assert early["type"].endswith(":image_not_ready")
    await work_off(tenant)
    for task in (by_name, by_id):
        run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
        async with tenant.state.db.reading() as tx:
            found = text("SELECT environment FROM runs WHERE id = :id")
            assert (await tx.execute(found, {"id": run["id"]})).scalar_one() == made["id"]
    in_use = await tenant.client.delete(f"/v1/images/{made['id']}")
    assert (in_use.status_code, in_use.json()["type"].rpartition(":")[2]) == (409, "image_in_use")
    foreign = await other.task(environment=made["id"])
    refused = await other.post("/v1/runs", {"task": foreign["id"], "agent": (await other.agent())["id"]}, 422)
    assert refused["type"].endswith(":image_not_found")


async def test_a_run_says_which_image_its_hosts_lack(tenant: Tenant) -> None:
    image = await brought(tenant, saved([LAYER], config([LAYER])))
    async with tenant.state.db.transaction() as tx:
        await hosts.register(tx, HostRow("host-1", "epoch-1", 4, ("runc",), ("base",)))
    scaffold = {"name": "kitted", "version": "1", "kind": "command", "argv": ["true"], "kit": "kits/unbuilt"}
    await tenant.post("/v1/scaffolds", scaffold)
    kitted = await tenant.post("/v1/agents", {"scaffold": "kitted@1"})
    plain, task = await tenant.agent(), await tenant.task()
    own = await tenant.task(environment="mine", name="t/own")
    waits = [
        (await tenant.post("/v1/runs", {"task": t["id"], "agent": a["id"]}))["id"]
        for t, a in ((task, kitted), (own, plain))
    ]
    holds = [(await tenant.get(f"/v1/runs/{run_id}"))["hold"] for run_id in waits]
    assert [h["reason"] for h in holds] == ["image_missing", "image_missing"]
    assert "'kits/unbuilt' (`make images` builds" in holds[0]["detail"]
    assert f"{image['id']!r} (hosts load it)" in holds[1]["detail"]
    async with tenant.state.db.transaction() as tx:
        await tx.execute(text("DELETE FROM hosts"))
