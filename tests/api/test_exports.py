"""Exports: what each profile holds, what the leak scan keeps at home, and a verifier that finds every changed digit."""

import hashlib
import io
import json
import subprocess
import sys
import venv
import zipfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from service.domain.operations import OperationState
from service.lifecycle.handover.verify_program import comparing
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.store import blob_refs, operations
from service.store.tables_benchmarks import operations as table
from tests.api.helpers import Tenant
from tests.api.results import filled


async def exported(one: Tenant, evaluation_id: str, **more: Any) -> Any:
    """Have an export made; return the operation as it ended."""
    made = await one.post("/v1/exports", {"evaluation_ids": [evaluation_id], **more}, 202)
    await perform(OperationContext(one.state.db, one.state.blobs, first_pause_s=0.01), made["id"])
    return await one.get(f"/v1/operations/{made['id']}")


async def unpacked(one: Tenant, operation: Any, folder: Path) -> Path:
    assert operation["state"] == OperationState.SUCCEEDED, operation["problem"]
    answer = await one.client.get(f"/v1/exports/{operation['id']}/archive.zip")
    assert answer.status_code == 200
    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert all(info.date_time == (1980, 1, 1, 0, 0, 0) for info in archive.infolist())
        archive.extractall(folder)
    return folder


def everything(folder: Path) -> str:
    """All texts of the export, file names included."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return "\n".join(str(path) + ("" if path.suffix == ".parquet" else path.read_text()) for path in files)


def verified(python: str, folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [python, *options, str(folder / "verify.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.timeout(400)
async def test_the_verifier_agrees_in_an_empty_environment_and_finds_what_was_changed(
    tenant: Tenant, tmp_path: Path
) -> None:
    evaluation_id, _ = await filled(tenant)
    venv.create(tmp_path / "empty")
    python = str(tmp_path / "empty" / "bin" / "python")
    for kind in ("overview", "freelance", "jobbench"):
        folder = await unpacked(tenant, await exported(tenant, evaluation_id, kind=kind), tmp_path / kind)
        status, said = verified(python, folder, "-I")
        assert status == 0, said
        assert "all that was checked agrees" in said
        assert "left out: 1 assisted, 1 infrastructure, 1 invalidated, 1 partial_after_limit" in said
        status, with_numpy = verified(sys.executable, folder)
        assert status == 0, with_numpy
        assert "skipped" not in with_numpy
    assert "skipped: no numpy" in said
    _change_each_figure(tmp_path / "freelance")
    _change_tables(tmp_path / "overview")


def _sealed(folder: Path, path: str, content: str | bytes) -> None:
    """Write a file and its digest, as a careful forger would."""
    (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["files"]:
        if entry["path"] == path:
            entry["sha256"] = hashlib.sha256((folder / path).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _looked_at(folder: Path) -> tuple[int, str]:
    """As ``verified``, in this process: for many looks."""
    said = io.StringIO()
    with redirect_stdout(said):
        status = comparing.verify(folder)
    return status, said.getvalue()


def _change_each_figure(folder: Path) -> None:
    path = "report/report.json"
    text = (folder / path).read_text()
    changed = 0
    for n, one in enumerate(json.loads(text)["tables"]):
        for column in [c for row in one["rows"][:1] for c, v in row.items() if isinstance(v, int | float)]:
            report = json.loads(text)
            report["tables"][n]["rows"][0][column] += 1
            _sealed(folder, path, json.dumps(report))
            status, said = _looked_at(folder)
            assert status == 1, (one["name"], column)
            assert f"DIFFERS {one['name']}" in said
            changed += 1
    assert changed > 20
    _sealed(folder, path, text)
    (folder / path).write_text(text + " ")
    status, said = _looked_at(folder)
    assert (status, f"DIFFERS file {path}" in said) == (1, True)
    _sealed(folder, path, text)
    (folder / "more.txt").write_text("x")
    assert "more.txt: not in the manifest" in _looked_at(folder)[1]


async def test_whatever_is_wrong_with_a_file_is_a_difference_and_names_it(tenant: Tenant, tmp_path: Path) -> None:
    evaluation_id, _ = await filled(tenant)
    folder = await unpacked(tenant, await exported(tenant, evaluation_id), tmp_path / "out")
    for path in [p for p in sorted(folder.rglob("*")) if p.is_file()]:
        name, data = path.relative_to(folder).as_posix(), path.read_bytes()
        cut, middle = data[: len(data) // 2], data[: len(data) // 3] + b"\xff\x00" + data[len(data) // 3 + 2 :]
        for damaged in (b"", cut, middle, b"[" * 9999, b"null", b"{}", data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]):
            path.write_bytes(damaged)
            status, said = _looked_at(folder)
            assert (status, "DIFFERS" in said, "agrees" in said) == (1, True, False), (name, damaged[:9])
            assert name == "manifest.json" or f"DIFFERS file {name}" in said, (name, damaged[:9])
            _sealed(folder, name, damaged) if name != "manifest.json" else None
            _looked_at(folder)  # whoever changes the digest with it still gets an answer
            path.write_bytes(data)
            _sealed(folder, name, data) if name != "manifest.json" else None
        path.unlink()
        assert _looked_at(folder)[0] == 1, name
        path.write_bytes(data)
    assert _looked_at(folder)[0] == 0


def _change_tables(folder: Path) -> None:
    path = "tables/runs.csv"
    text = (folder / path).read_text()
    for old, new, cell in (
        (",0.75,0.75,", ",0.75,0.5,", ".counted"), (",graded,stopped,", "", ""), (",0.25,", ",0.5,", "cost_usd"),
        (",wall_clock,", ",completed,", ".exclusion"),
    ):  # fmt: skip
        if not new:
            continue
        assert old in text, old
        _sealed(folder, path, text.replace(old, new, 1))
        status, said = _looked_at(folder)
        assert status == 1, cell
        assert cell in said
    _sealed(folder, path, text)
    assert _looked_at(folder)[0] == 0


async def test_each_profile_leaves_out_what_it_should(tenant: Tenant, tmp_path: Path) -> None:
    evaluation_id, _ = await filled(tenant)
    agents = {a["label"] for a in (await tenant.get("/v1/agents"))["data"]}
    hidden, alias = sorted(agents)
    texts: dict[str, str] = {}
    for profile in ("internal", "reviewer", "public"):
        more = {"aliases": {hidden: "agent A"}} if profile == "public" else {}
        found = await exported(tenant, evaluation_id, profile=profile, kind="overview", **more)
        texts[profile] = everything(await unpacked(tenant, found, tmp_path / profile))
        assert verified(sys.executable, tmp_path / profile)[0] == 0
    for secret in ("the hidden rubric", "the hidden criterion", "quotes the brief", "host-17", "tok_lead", "fine work"):
        assert secret in texts["internal"], secret
        assert secret not in texts["public"], secret
    assert "host-17" not in texts["reviewer"]
    assert "tok_lead" not in texts["reviewer"]
    assert "the hidden rubric" in texts["reviewer"]
    assert "Ann Lee" not in texts["public"]
    assert hidden not in texts["public"]
    assert "agent A" in texts["public"]
    assert alias in texts["public"]
    assert "item-3" not in texts["public"]
    assert "private/" in texts["public"]
    manifest = json.loads((tmp_path / "public" / "manifest.json").read_text())
    assert (manifest["profile"], manifest["left_out"]["private_tasks"]) == ("public", 1)
    assert "resolved" not in manifest["evaluations"][0]


async def test_agents_under_embargo_leave_no_trace(tenant: Tenant, tmp_path: Path) -> None:
    evaluation_id, _ = await filled(tenant)
    (first, *_) = sorted(a["label"] for a in (await tenant.get("/v1/agents"))["data"])
    found = await exported(tenant, evaluation_id, profile="public", embargo=[first])
    folder = await unpacked(tenant, found, tmp_path / "out")
    assert first not in everything(folder)
    assert json.loads((folder / "manifest.json").read_text())["left_out"]["embargoed_runs"] > 0
    assert verified(sys.executable, folder)[0] == 0
    refused = await exported(tenant, evaluation_id, profile="public", embargo=["nobody"])
    assert refused["problem"]["type"] == "urn:workstead:problem:unknown_agent"


async def test_nothing_leaves_with_open_findings_until_each_is_waived_by_name(tenant: Tenant, tmp_path: Path) -> None:
    secret = "ghp_" + "a1" * 18
    notice = f"Write to ann.lee@example.org or https://example.org/terms, key {secret}"
    evaluation_id, _ = await filled(tenant, notice=notice)
    refused = await exported(tenant, evaluation_id, profile="public", names=["fixture"])
    problem = refused["problem"]
    assert (refused["state"], problem["type"]) == ("failed", "urn:workstead:problem:open_findings")
    assert {f["kind"] for f in problem["findings"]} == {"email", "token", "url", "name"}
    assert secret not in json.dumps(refused)
    assert (await tenant.client.get(f"/v1/exports/{refused['id']}/archive.zip")).status_code == 409
    names = [f["name"] for f in problem["findings"]]
    half = await exported(tenant, evaluation_id, profile="public", names=["fixture"], waivers=names[1:])
    assert [f["name"] for f in half["problem"]["findings"]] == names[:1]
    waived = await exported(tenant, evaluation_id, profile="public", names=["fixture"], waivers=names)
    folder = await unpacked(tenant, waived, tmp_path / "out")
    assert json.loads((folder / "manifest.json").read_text())["waivers"] == names
    internal = await exported(tenant, evaluation_id)
    assert {f["kind"] for f in internal["problem"]["findings"]} == {"token"}


async def test_exports_are_their_projects_and_hidden_ones_for_those_who_may_read(tenant: Tenant, other: Tenant) -> None:
    evaluation_id, _ = await filled(tenant)
    made = await exported(tenant, evaluation_id)
    path = f"/v1/exports/{made['id']}/archive.zip"
    await other.get(path, 404)
    await other.post("/v1/exports", {"evaluation_ids": [evaluation_id]}, 404)
    assert (await tenant.client.get(path, headers=await tenant.token("reports:read"))).status_code == 403
    both = await tenant.token("reports:read", "hidden:read")
    assert (await tenant.client.get(path, headers=both)).status_code == 200
    part = await tenant.client.get(path, headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"PK\x03\x04")
    bodies: list[Any] = [
        {"evaluation_ids": []},
        {"evaluation_ids": ["x", "x"]},
        {"evaluation_ids": ["x"], "embargo": ["y"]},
    ]
    for wrong in bodies:
        await tenant.post("/v1/exports", wrong, 422)
    async with tenant.state.db.transaction() as tx:
        old = table.update().where(table.c.id == made["id"])
        await tx.execute(old.values(ended_at=table.c.ended_at - operations.KEPT * 2))
        await operations.purge(tx)
        assert await blob_refs.one_owned(tx, blob_refs.EXPORT, made["id"]) is None
