"""Deliverables over HTTP: exact bytes, parts of them, and nothing that runs on our origin."""

import io
import json
import zipfile
from urllib.parse import quote, unquote

import pytest
import zstandard

from service.domain.artifacts import REASONS, ArtifactEntry, EntryKind
from service.sandboxes.docker.signatures import media_type
from service.store import attempts
from tests.api.helpers import Tenant, file_entry

HTML = b"<script>document.title=document.cookie</script>"
ODD = [
    'output/"><img src=x onerror=alert(1)>.png',
    "output/ lead and trail. ",
    "output/-rf",
    "output/\u202egnp.exe",
    "output/e\u0301 and \u00e9",
    "output/a%0D%0ASet-Cookie:x",
    "output/%FF%FE",
    "output/a?b#c&d",
]


async def _sealed(tenant: Tenant) -> str:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    link = ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="/etc/passwd")
    files = [
        file_entry("output/page.html", HTML, "text/html"),
        file_entry("output/x.svg", b"<svg/>", "image/svg+xml"),
        file_entry("output/data.csv", b"a,b\n1,2\n", "text/csv"),
        file_entry("output/big.bin", bytes(range(256)) * 4096),
        file_entry("output/empty", b""),
        *[file_entry(name, name.encode()) for name in ODD],
        (ArtifactEntry("output/sub", EntryKind.DIRECTORY), None),
        (link, None),
    ]
    await tenant.seal(attempt, files)
    return run["id"]


async def test_list_is_complete_and_paged(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    seen: list[str] = []
    link = f"/v1/runs/{run_id}/artifacts?limit=4"
    while link:
        page = await tenant.get(link)
        seen += [a["path"] for a in page["data"]]
        link = page["next"]
    assert len(seen) == 7 + len(ODD)
    found = {a["path"]: a for a in (await tenant.get(f"/v1/runs/{run_id}/artifacts"))["data"]}
    assert (found["output/link"]["kind"], found["output/link"]["href"]) == ("skipped_symlink", None)
    assert found["output/link"]["link_target"] == "/etc/passwd"


@pytest.mark.fault(16, 17, 69)
async def test_every_name_downloads_by_its_href(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    for artifact in (await tenant.get(f"/v1/runs/{run_id}/artifacts"))["data"]:
        if artifact["path"] in ODD:
            assert artifact["href"] == f"/v1/runs/{run_id}/artifacts/{quote(artifact['path'])}"
            answer = await tenant.client.get(artifact["href"])
            assert (answer.status_code, answer.content.decode()) == (200, artifact["path"])
            header = answer.headers["content-disposition"]
            assert unquote(header.rpartition("''")[2]) == artifact["path"].rpartition("/")[2]
            assert "set-cookie" not in answer.headers


@pytest.mark.fault(67, 68)
async def test_nothing_can_run_on_our_origin(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    for name in ("page.html", "x.svg"):
        answer = await tenant.client.get(f"/v1/runs/{run_id}/artifacts/output/{name}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


RUNNABLE = {
    "page.htm": b"<html><script>alert(1)</script>",
    "no-suffix": b"<!doctype html><script>alert(1)</script>",
    "page.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
    "style.xml": b'<?xml-stylesheet type="text/xsl" href="#x"?><x:t xmlns:x="http://www.w3.org/1999/XSL/Transform"/>',
    "feed.rss": b'<?xml version="1.0"?><rss><script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script></rss>',
    "x.svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "x.js": b"alert(document.cookie)",
    "polyglot.gif": b"GIF89a/*\x00\x00*/=1;alert(document.cookie)//",
    "polyglot.js": b"GIF89a=1;alert(document.cookie)",
    "polyglot.bmp": b"BM=1;alert(document.cookie)",
    "script.pdf": b"%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj",
    "polyglot.pdf": b"<script>alert(1)</script>%PDF-1.7",
    "page.html.txt": b"<script>alert(1)</script>",
    "x.swf": b"FWS\x09aaaa",
    "x.wasm": b"\x00asm\x01\x00\x00\x00",
    "x.mht": b"MIME-Version: 1.0\nContent-Type: text/html\n\n<script>alert(1)</script>",
    "x.css": b"@import url(javascript:alert(1));",
}
NEVER_RUNS = {"application/octet-stream", "application/pdf", "image/gif", "image/bmp", "text/plain; charset=utf-8"}


@pytest.mark.fault(67, 68)
async def test_what_runs_elsewhere_is_inert_here(tenant: Tenant) -> None:
    """The types are those that collection finds, so that the way from bytes to headers is one."""
    run = await tenant.run()
    files = [file_entry(f"output/{n}", data, media_type(n, data, data)) for n, data in RUNNABLE.items()]
    await tenant.seal(await tenant.start(run["id"]), files)
    for name, data in RUNNABLE.items():
        for headers in ({}, {"Range": "bytes=0-"}, {"Accept": "text/html"}, {"Accept": "image/svg+xml"}):
            answer = await tenant.client.get(f"/v1/runs/{run['id']}/artifacts/output/{name}", headers=headers)
            assert answer.content == data
            said = answer.headers
            assert said["content-type"] in NEVER_RUNS, name
            assert said["content-disposition"].startswith("attachment;")
            assert (said["x-content-type-options"], said["cross-origin-resource-policy"]) == ("nosniff", "same-origin")
            assert said["content-security-policy"] == "sandbox; default-src 'none'"


async def test_parts(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/artifacts/output/big.bin"
    whole = await tenant.client.get(path)
    tag = whole.headers["etag"]
    assert whole.headers["content-length"] == str(1 << 20)
    part = await tenant.client.get(path, headers={"Range": "bytes=255-256", "If-Range": tag})
    assert (part.status_code, part.content) == (206, b"\xff\x00")
    assert part.headers["content-range"] == f"bytes 255-256/{1 << 20}"
    assert (await tenant.client.get(path, headers={"Range": "bytes=0-1", "If-Range": '"x"'})).status_code == 200
    beyond = await tenant.client.get(path, headers={"Range": "bytes=9999999-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{1 << 20}")
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 304
    head = await tenant.client.head(path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(1 << 20))
    assert (await tenant.client.get(f"/v1/runs/{run_id}/artifacts/output/link")).status_code == 409
    assert (await tenant.client.get(f"/v1/runs/{run_id}/artifacts/output/none")).status_code == 404
    assert (await tenant.client.get(f"/v1/runs/{run_id}/artifacts/../../../etc/passwd")).status_code == 404
    assert (await tenant.client.get(f"/v1/runs/{run_id}/artifacts/output/empty")).content == b""


async def test_the_archive_has_all_files_and_says_what_is_left_out(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    answer = await tenant.client.get(f"/v1/runs/{run_id}/archive.zip")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.read("output/page.html") == HTML
        assert len(archive.namelist()) == 5 + len(ODD) + 1
        manifest = json.loads(archive.read(".workstead-manifest.json"))
    entries = {e["path"]: e for e in manifest}
    assert set(entries) == {"output/link", "output/sub", *(n for n in entries if entries[n]["kind"] == "file")}
    assert entries["output/link"]["reason"].startswith("a symbolic link")
    assert entries["output/sub"]["reason"] is None
    listed = {a["path"]: a for a in (await tenant.get(f"/v1/runs/{run_id}/artifacts"))["data"]}
    assert listed["output/link"]["reason"] == entries["output/link"]["reason"]
    unsealed = await tenant.run()
    assert (await tenant.client.get(f"/v1/runs/{unsealed['id']}/archive.zip")).status_code == 409


def test_every_kind_that_is_not_taken_has_a_reason() -> None:
    assert set(EntryKind) - set(REASONS) == {EntryKind.FILE, EntryKind.DIRECTORY}


async def test_the_archive_is_not_sent_twice(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/archive.zip"
    tag = (await tenant.client.get(path)).headers["etag"]
    again = await tenant.client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    head = await tenant.client.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)
    assert head.headers["content-disposition"].startswith(f'attachment; filename="{run_id}.zip"')


async def test_names_in_the_archive_never_clash(tenant: Tenant) -> None:
    run = await tenant.run()
    names = ["a:b", "a%253Ab", "a\\b", "a%255Cb", "README", "readme", "e\u0301", "\u00e9", "%FF"]
    files = [file_entry(f".workstead-manifest.json/{name}", name.encode()) for name in names]
    await tenant.seal(await tenant.start(run["id"]), files)
    answer = await tenant.client.get(f"/v1/runs/{run['id']}/archive.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        found = archive.namelist()
        assert len(set(found)) == len(found) == len(names) + 1
        assert not any("\\" in name or ":" in name for name in found)
        assert len(json.loads(archive.read("_.workstead-manifest.json"))) == len(names)
        contents = {archive.read(name).decode() for name in found if not name.startswith("_")}
    assert contents == set(names)


async def test_raw_logs(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    path = f"/v1/runs/{run['id']}/attempts/1/logs/stdout"
    assert (await tenant.get(path, 409))["type"].endswith("log_not_sealed")
    plain = b"\x1b[31mred\xff\n" * 50_000
    digest, _ = tenant.state.blobs.store_bytes(zstandard.ZstdCompressor().compress(plain))
    log = {"bytes": len(plain), "log_bytes": len(plain), "sha256": digest}
    async with tenant.state.db.transaction() as tx:
        await attempts.update(tx, attempt, logs={"stdout": log})
    whole = await tenant.client.get(path)
    assert whole.content == plain
    assert whole.headers["content-disposition"].startswith("attachment")
    part = await tenant.client.get(path, headers={"Range": "bytes=400000-400009"})
    assert (part.status_code, part.content) == (206, plain[400_000:400_010])
    assert (await tenant.client.get(f"/v1/runs/{run['id']}/attempts/1/logs/stdin")).status_code == 422
    shown = (await tenant.get(f"/v1/runs/{run['id']}/attempts"))["data"]
    assert shown[0]["logs"]["stdout"] == {"total_bytes": len(plain), "log_bytes": len(plain)}
    assert (await tenant.get(f"/v1/runs/{run['id']}/attempts/1"))["n"] == 1
    await tenant.get(f"/v1/runs/{run['id']}/attempts/2", 404)
    await tenant.get(f"/v1/runs/{run['id']}/attempts/99999999999", 422)
