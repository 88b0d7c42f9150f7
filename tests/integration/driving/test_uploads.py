"""Deliverables made elsewhere: sealed once, graded as any other, and never given to a host."""

import io
import json
import tarfile
import zipfile
from typing import Any

import pytest

from service.domain.run_states import EndedBecause, Flag, Outcome, Phase, StopMode
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import RIGHT, Stage

ANSWERS = json.dumps(RIGHT).encode()


def tar_gz(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


async def external(remote: Remote, **task: Any) -> str:
    run = await remote.stage.submit(await remote.stage.task(**task), await remote.agent("external"))
    assert run.phase is Phase.HELD
    assert run.hold is not None
    assert run.hold["reason"] == "awaiting_upload"
    return run.id


async def graded(stage: Stage, run_id: str) -> None:
    await stage.grade_all()
    row = await stage.row(run_id)
    assert (row.phase, row.outcome, row.ended_because) == (Phase.DONE, Outcome.GRADED, EndedBecause.COMPLETED)
    assert row.score == 2.0
    assert Flag.EXTERNAL in row.flags


async def test_an_external_run_is_no_hosts_and_waits_for_its_upload(remote: Remote) -> None:
    run_id = await external(remote)
    await remote.stage.work(remote.stage.context(), run_id)
    assert (await remote.stage.row(run_id)).phase is Phase.HELD
    assert await remote.stage.attempts(run_id) == []
    await remote.stage.stop(run_id, StopMode.COLLECT)
    assert (await remote.stage.row(run_id)).outcome is Outcome.CANCELLED
    problem = await remote.call("PUT", f"/v1/runs/{run_id}/deliverable", 409, json={"files": []})
    assert problem["type"].endswith(":run_over")


@pytest.mark.parametrize(("pack", "kind"), [(tar_gz, "application/gzip"), (zipped, "application/zip")])
@pytest.mark.parametrize("path", ["answers.json", "output/answers.json"])
async def test_an_archive_is_sealed_and_graded(remote: Remote, pack: Any, kind: str, path: str) -> None:
    run_id = await external(remote)
    body = pack({path: ANSWERS, "output/notes/why.md": b"# because"})
    run = await remote.call("PUT", f"/v1/runs/{run_id}/deliverable", content=body, headers={"Content-Type": kind})
    assert (run["phase"], run["deliverable"]["files"]) == ("grading", 2)
    again = await remote.call("PUT", f"/v1/runs/{run_id}/deliverable", content=body, headers={"Content-Type": kind})
    assert again["deliverable"]["digest"] == run["deliverable"]["digest"]
    await graded(remote.stage, run_id)
    listed = await remote.call("GET", f"/v1/runs/{run_id}/artifacts")
    assert {(e["path"], e["mime"]) for e in listed["data"]} == {
        ("output/answers.json", "application/json"), ("output/notes/why.md", "text/markdown"),
    }  # fmt: skip
    other = pack({path: b"{}"})
    problem = await remote.call(
        "PUT", f"/v1/runs/{run_id}/deliverable", 409, content=other, headers={"Content-Type": kind}
    )
    assert problem["type"].endswith(":deliverable_sealed")


async def test_blobs_are_sealed_by_path_and_graded_with_no_run(remote: Remote) -> None:
    ref = await remote.stage.upload("x", ANSWERS)
    task = await remote.stage.task()
    body = {"task": task, "files": [{"path": "answers.json", "sha256": ref.sha256}], "labels": {"from": "elsewhere"}}
    headers = {"Idempotency-Key": "once"}
    run = await remote.call("POST", "/v1/gradings", 201, json=body, headers=headers)
    same = await remote.call("POST", "/v1/gradings", 201, json=body, headers=headers)
    assert (same["id"], run["agent"]["label"], run["labels"]) == (run["id"], "upload@1", {"from": "elsewhere"})
    await graded(remote.stage, run["id"])
    found = await remote.call("GET", f"/v1/runs/{run['id']}/gradings")
    assert [g["score"] for g in found["data"]] == [2.0]


async def test_an_archive_is_graded_with_no_run(remote: Remote) -> None:
    task = await remote.stage.task()
    body, headers = tar_gz({"answers.json": ANSWERS}), {"Content-Type": "application/gzip"}
    run = await remote.call("POST", "/v1/gradings", 201, params={"task": task}, content=body, headers=headers)
    await graded(remote.stage, run["id"])


async def test_bad_uploads_are_refused_and_seal_nothing(remote: Remote) -> None:
    run_id = await external(remote, limits={"deliverable_bytes": 40, "deliverable_files": 2})
    path = f"/v1/runs/{run_id}/deliverable"
    ref = await remote.stage.upload("x", ANSWERS)
    two = [{"path": p, "sha256": ref.sha256} for p in ("answers.json", "output/answers.json")]
    tar = {"Content-Type": "application/gzip"}
    bad: list[tuple[str, dict[str, Any]]] = [
        ("missing_blobs", {"json": {"files": [{"path": "a", "sha256": "0" * 64}]}}),
        ("bad_upload", {"json": {"files": two}}),
        ("invalid_request", {"json": {"files": [{"path": "../a", "sha256": ref.sha256}]}}),
        ("deliverable_too_large", {"content": tar_gz({"a": b"x" * 41}), "headers": tar}),
        ("deliverable_too_large", {"content": tar_gz({"a": b"", "b": b"", "c": b""}), "headers": tar}),
        ("bad_upload", {"content": tar_gz({"a": b"1", "output/a/b": b"2"}), "headers": tar}),
    ]
    for type, options in bad:
        problem = await remote.call("PUT", path, 422, **options)
        assert problem["type"].endswith(f":{type}"), problem
    await remote.call("PUT", path, 422, content=b"no archive", headers=tar)
    assert (await remote.stage.row(run_id)).phase is Phase.HELD


async def test_a_run_with_a_sandbox_takes_no_upload(remote: Remote) -> None:
    run = await remote.stage.submit(await remote.stage.task(), await remote.agent())
    problem = await remote.call("PUT", f"/v1/runs/{run.id}/deliverable", 409, json={"files": []})
    assert problem["type"].endswith(":not_external")
