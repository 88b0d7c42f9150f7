"""Previews without a browser: who opens what, for how long, and what every answer forbids."""

from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest

from service.api.state import ApiConfig, ApiState
from service.store import previews
from service.store.previews import Tree
from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, file_entry

FILES = {
    "output/game/index.html": b"<script src='js/app.js'></script>",
    "output/game/js/app.js": b"1",
    "output/100%25.svg": b"<svg/>",
    "notes.md": b"# hi",
}


async def delivered(tenant: Tenant, files: dict[str, bytes] = FILES) -> str:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await tenant.seal(attempt, [file_entry(path, data) for path, data in files.items()])
    return str(run["id"])


async def granted(tenant: Tenant, tree: Tree, lives: timedelta = previews.LIVES) -> str:
    async with tenant.state.db.transaction() as tx:
        return (await previews.grant(tx, tenant.state.secrets, tree, lives))[0]


async def test_a_capability_opens_the_files_of_its_tree(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    run_id = await delivered(tenant)
    capability = await granted(tenant, Tree(tenant.project_id, "deliverable", run_id))
    assert run_id not in capability
    for path, mime, body in (
        ("output/game/index.html", "text/html", FILES["output/game/index.html"]),
        ("output/game/", "text/html", FILES["output/game/index.html"]),
        ("output/game/js/app.js", "text/javascript; charset=utf-8", b"1"),
        ("output/100%25.svg", "image/svg+xml", b"<svg/>"),
        ("notes.md", "text/plain; charset=utf-8", b"# hi"),
    ):
        answer = await anonymous.get(f"/preview/{capability}/{path}")
        assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, mime, body), path
    part = await anonymous.get(f"/preview/{capability}/notes.md", headers={"Range": "bytes=2-"})
    assert (part.status_code, part.content) == (206, b"hi")
    for path in ("", "output", "output/other.html", "../../etc/passwd", "x" * 5000):
        assert (await anonymous.get(f"/preview/{capability}/{path}")).status_code == 404


@pytest.mark.fault(57)
async def test_only_what_was_sealed_here_and_only_in_time(
    tenant: Tenant, other: Tenant, anonymous: httpx.AsyncClient
) -> None:
    run_id = await delivered(tenant)
    tree = Tree(tenant.project_id, "deliverable", run_id, prefix="output/game/")
    good = await granted(tenant, tree)
    over = await granted(tenant, tree, timedelta(seconds=-1))
    path = "output/game/index.html"
    assert (await anonymous.get(f"/preview/{good}/{path}")).status_code == 200
    assert (await anonymous.get(f"/preview/{good}/notes.md")).status_code == 404  # outside of it
    forged = good[:-2] + ("AA" if not good.endswith("AA") else "BB")
    for bad in (over, forged, good.removeprefix("wsp_"), "wsp_", "wsp_\u00e4", good + "A" * 2000, run_id):
        answer = await anonymous.get(f"/preview/{bad}/{path}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:workstead:problem:no_preview"), bad
    # A capability outlives nothing: with the row of another project it is worth nothing there.
    foreign = await granted(other, Tree(other.project_id, "reference", run_id))
    assert (await anonymous.get(f"/preview/{foreign}/{path}")).status_code == 404


async def test_a_reference_is_the_hidden_files_below_its_root(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    digest = await tenant.blob(b"<p>theirs</p>")
    hidden = [{"path": p, "sha256": digest, "size_bytes": 13} for p in ("reference/index.html", "rubric.html")]
    task = await tenant.task(hidden=hidden, visible=[{"path": "page.html", "sha256": digest, "size_bytes": 13}])
    capability = await granted(tenant, Tree(tenant.project_id, "reference", task["id"], prefix="reference/"))
    assert (await anonymous.get(f"/preview/{capability}/reference/index.html")).content == b"<p>theirs</p>"
    for path in ("rubric.html", "page.html"):
        assert (await anonymous.get(f"/preview/{capability}/{path}")).status_code == 404
    inputs = await granted(tenant, Tree(tenant.project_id, "inputs", task["id"]))
    found = [(await anonymous.get(f"/preview/{inputs}/{p}")).status_code for p in ("page.html", "rubric.html")]
    assert found == [200, 404]


async def test_an_entrys_address_tells_no_names(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    files = {"out/by acme/site/acme.html": b"entry", "out/by acme/site/a.css": b"css", "out/up.js": b"up", "~0/x": b"x"}
    tree = Tree(tenant.project_id, "deliverable", await delivered(tenant, files), entry="out/by acme/site/acme.html")
    base = f"/preview/{await granted(tenant, tree)}/"
    assert previews.address(tree) == "~0/~1/~2/~.html"
    assert "acme" not in base
    for path, body in (
        ("~0/~1/~2/~.html", b"entry"),
        ("~0/~1/~2/a.css", b"css"),
        ("~0/~1/site/a.css", b"css"),
        ("~0/up.js", b"up"),
        ("out/up.js", b"up"),
    ):
        assert (await anonymous.get(base + path)).content == body, path
    for path in ("~0/~1/~.html", "~1/up.js", "~0", "~/up.js"):
        assert (await anonymous.get(base + path)).status_code == 404, path
    bare = Tree(tenant.project_id, "deliverable", "run", entry="page")
    assert previews.address(bare) == "~.html"


@pytest.mark.fault(67, 68, 69)
async def test_every_answer_is_in_a_sandbox(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    evil = """output/"><img src=x onerror='1'>; sandbox allow-same-origin.html"""
    names = ("a.html", "a.svg", "a.xml", "a.xhtml", "a.pdf", "a.gif", evil)
    files: dict[str, bytes] = dict.fromkeys(names, b"<script>1</script>")
    capability = await granted(tenant, Tree(tenant.project_id, "deliverable", await delivered(tenant, files)))
    for path in files:
        answer = await anonymous.get(f"/preview/{capability}/{quote(path)}")
        assert answer.status_code == 200, path
        told = str(answer.headers["content-security-policy"]).split("; ")
        rules = {name: rest for name, _, rest in (rule.partition(" ") for rule in told)}
        here = f"{BASE}/preview/{capability}/"
        assert rules["sandbox"] == "allow-scripts"
        assert rules["default-src"] == f"{here} data: blob: 'unsafe-inline' 'unsafe-eval'"
        assert rules["connect-src"] == f"{here} data: blob:"
        assert (rules["form-action"], rules["object-src"]) == ("'none'", "'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "set-cookie" not in answer.headers
        assert "access-control-allow-credentials" not in answer.headers
    host = {"Host": "a.test; script-src *"}
    answer = await anonymous.get(f"/preview/{capability}/a.html", headers=host)
    assert "a.test" not in answer.headers["content-security-policy"]


async def test_an_origin_of_their_own_has_them_and_nothing_else(tenant: Tenant, state: ApiState) -> None:
    theirs = "http://previews.test:8040"
    config = ApiConfig(public_url=BASE, preview_origin=theirs)
    app = app_of(ApiState(state.db, state.notifications, state.blobs, config, secrets=state.secrets))
    capability = await granted(tenant, Tree(tenant.project_id, "deliverable", await delivered(tenant)))
    path = f"/preview/{capability}/output/game/index.html"
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, headers=tenant.bearer) as client:
        found = await client.get(theirs + path)
        assert found.status_code == 200
        assert f"default-src {theirs}/preview/{capability}/ data:" in found.headers["content-security-policy"]
        assert BASE not in found.headers["content-security-policy"]
        assert (await client.get(BASE + path)).status_code == 404
        assert (await client.get(f"{BASE}/v1/me")).status_code == 200
        for elsewhere in ("/v1/me", "/login", "/healthz", "/"):
            assert (await client.get(theirs + elsewhere)).status_code == 404


async def test_missing_parts_lock_nobody_out(tenant: Tenant, anonymous: httpx.AsyncClient) -> None:
    capability = await granted(tenant, Tree(tenant.project_id, "deliverable", await delivered(tenant)))
    for n in range(40):
        assert (await anonymous.get(f"/preview/{capability}/{n}.png")).status_code == 404
    answers = [(await anonymous.get(f"/preview/wsp_{n}/x")).status_code for n in range(40)]
    assert (answers[0], answers[-1]) == (404, 429)
    assert (await anonymous.get(f"/preview/{capability}/notes.md")).status_code == 200
