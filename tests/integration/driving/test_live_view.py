"""A run's screen through API, bridge and filter, before VNC servers and viewers that keep to the rules and that do not."""

import asyncio
import contextlib
import struct
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from service.api import viewing
from service.api.resources import live_view
from service.desktop.desktops import Desktops
from service.domain.run_states import Phase
from service.store import leases
from service.testing import fake_deskd
from tests.api.helpers import served
from tests.integration.driving.fake_vnc import INIT, FakeVnc
from tests.integration.driving.remote import BASE, Remote
from tests.integration.lifecycle.stage import Stage, until

HELLO = b"RFB 003.008\n\x01\x00"
UPDATE = struct.pack(">BBHHHH", 3, 1, 0, 0, 64, 48)
KEY = struct.pack(">BBHI", 4, 1, 0, 0x61)
POINT = struct.pack(">BBHH", 5, 1, 10, 20)
VNC = 5900


@pytest.fixture
async def remote(stage: Stage) -> AsyncIterator[Remote]:
    """Its host has image ``desktop``."""
    stage.machine.images["desktop"] = "sha256:" + "2" * 64
    stage.host = replace(stage.host, environments=(*stage.host.environments, "desktop"))
    async with Remote.open(stage) as made:
        yield made


@pytest.fixture
async def site(remote: Remote) -> AsyncIterator[str]:
    async with served(remote.app) as url:
        yield url.replace("http:", "ws:")


@pytest.fixture
async def vnc(remote: Remote) -> AsyncIterator[FakeVnc]:
    async with FakeVnc.serving() as made:
        remote.stage.machine.ports[VNC] = made.port
        yield made


async def begun(remote: Remote, kind: str = "person") -> str:
    """A run with a screen, in the hands of its driver."""
    agent = await remote.stage.agent(f"{kind}-on-desktop", kind=kind, surface="desktop")
    program = (sys.executable, "-I", fake_deskd.__file__)
    run = await remote.stage.submit(await remote.stage.task(), agent)
    await remote.start_worker(run.id, desktops=Desktops(program))
    await until(lambda: remote.stage.has_event(run.id, "run.ready"))
    return run.id


async def ticket(remote: Remote, run_id: str, status: int = 201, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = await remote.call("POST", f"/v1/runs/{run_id}/desktop/ticket", status, json=body)
    return made


def opened(site: str, path: str, secret: str = "", **more: Any) -> connect:
    query = f"?ticket={secret}" if secret else ""
    return connect(site + path + query, subprotocols=[Subprotocol("binary")], **more)


async def greeted(socket: ClientConnection) -> None:
    """Go through the greeting, as a viewer does."""
    await socket.send(HELLO)
    got = b""
    while not got.endswith(INIT):
        data = await socket.recv()
        assert isinstance(data, bytes)
        got += data


async def refused(opening: connect) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as found:
        async with opening:
            pass
    response = found.value.response
    return response.status_code, response.body.decode().partition("problem:")[2].partition('"')[0]


async def closed(socket: ClientConnection) -> int:
    """Read until the server closes; return its code."""
    with contextlib.suppress(ConnectionClosed):
        async with asyncio.timeout(20):
            while True:
                await socket.recv()
    return socket.close_code or 0


async def holds(check: Callable[[], bool]) -> None:
    async def look() -> bool:
        return check()

    await until(look)


async def view_events(remote: Remote, run_id: str) -> list[dict[str, Any]]:
    return [e.payload for e in await remote.stage.events(run_id, "desktop.view")]


async def test_a_viewer_sees_and_cannot_act(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"]) as socket:
        assert socket.subprotocol == "binary"
        await greeted(socket)
        await socket.send(UPDATE[:3])
        await socket.send(UPDATE[3:] + KEY + POINT + UPDATE)
        await holds(lambda: bytes(vnc.heard) == b"\x01" + UPDATE * 2)
        vnc.show(b"a picture")
        assert await socket.recv() == b"a picture"
    await until(lambda: remote.stage.has_event(run_id, "desktop.view", 2))
    first, last = await view_events(remote, run_id)
    assert (first["action"], first["control"], last["action"]) == ("opened", False, "closed")
    assert last["dropped"] == {"key": 1, "pointer": 1}
    assert not await remote.stage.events(run_id, "desktop.input")
    await holds(lambda: vnc.open == 0)


async def test_who_holds_the_assignment_acts_and_it_is_in_the_log(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    await remote.claim(run_id)
    made = await ticket(remote, run_id, control=True)
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
        await socket.send(KEY + POINT)
        await holds(lambda: bytes(vnc.heard) == b"\x01" + KEY + POINT)
        await until(lambda: remote.stage.has_event(run_id, "desktop.input"))
        await socket.send(KEY)  # the last word is in the log too
        await holds(lambda: vnc.heard.count(KEY) == 2)
    await until(lambda: remote.stage.has_event(run_id, "desktop.view", 2))
    records = [r for e in await remote.stage.events(run_id, "desktop.input") for r in e.payload["records"]]
    assert records == [{"key": 97, "down": True}, {"x": 10, "y": 20, "buttons": 1}, {"key": 97, "down": True}]


async def test_a_paused_run_takes_no_input(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    await remote.claim(run_id)
    made = await ticket(remote, run_id, control=True)
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
        await remote.call("POST", f"/v1/runs/{run_id}/pause")
        await asyncio.sleep(viewing.LOOK_S + 0.5)  # at the latest then it is known
        await socket.send(KEY + UPDATE)
        await holds(lambda: vnc.heard.endswith(UPDATE))
        assert KEY not in vnc.heard
        await remote.call("POST", f"/v1/runs/{run_id}/resume")

        async def typed() -> bool:
            await socket.send(KEY)
            return KEY in vnc.heard

        await until(typed)


@pytest.mark.fault(63, 64)
async def test_tickets(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    other = f"/v1/runs/{run_id}x/desktop/view"
    assert await refused(opened(site, other, made["ticket"])) == (401, "bad_ticket")
    assert await refused(opened(site, made["path"].replace("view", "control"), made["ticket"])) == (401, "bad_ticket")
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
    assert await refused(opened(site, made["path"], made["ticket"])) == (401, "bad_ticket")
    made = await ticket(remote, run_id)
    foreign = opened(site, made["path"], made["ticket"], origin=Origin("https://evil.test"))
    assert await refused(foreign) == (403, "foreign_origin")
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"], origin=Origin(BASE)) as socket:
        await greeted(socket)
    assert await refused(opened(site, made["path"])) == (403, "foreign_origin")
    assert await refused(opened(site, made["path"], origin=Origin(BASE))) == (401, "bad_credentials")


@pytest.mark.fault(64)
async def test_a_session_opens_it_from_our_own_pages_only(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    log_in = await remote.http.post("/login", data={"token": remote.token}, headers={"Origin": BASE})
    cookie = {"Cookie": log_in.headers["set-cookie"].partition(";")[0]}
    path = f"/v1/runs/{run_id}/desktop/view"
    async with opened(site, path, additional_headers=cookie, origin=Origin(BASE)) as socket:
        await greeted(socket)
    for origin in (Origin("https://evil.test"), Origin("null"), None):
        assert await refused(opened(site, path, additional_headers=cookie, origin=origin)) == (403, "foreign_origin")
    control = opened(site, path.replace("view", "control"), additional_headers=cookie, origin=Origin(BASE))
    assert await refused(control) == (401, "bad_credentials")


async def test_who_gets_no_ticket(remote: Remote, vnc: FakeVnc) -> None:
    shell = await remote.begin()
    assert (await ticket(remote, shell.id, 409))["type"].endswith("no_screen")
    await remote.kill_worker()


@pytest.mark.parametrize("control", [True, False])
async def test_an_agents_screen_is_watched_only(remote: Remote, vnc: FakeVnc, control: bool) -> None:
    run_id = await begun(remote, "remote")
    await remote.claim(run_id)
    made = await ticket(remote, run_id, 409 if control else 201, control=control)
    assert made.get("type", "not_person").endswith("not_person")


async def test_control_goes_with_the_lease(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    await remote.claim(run_id)
    early, made = [await ticket(remote, run_id, control=True) for _ in range(2)]
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
        await remote.call("POST", f"/v1/runs/{run_id}/release", 204)
        assert await closed(socket) == viewing.Ended.FORBIDDEN
    await remote.claim(run_id, "somebody else")
    # A ticket of the earlier holder opens nothing of the later one's.
    assert await refused(opened(site, early["path"], early["ticket"])) == (409, "lease_lost")
    bearer = {"Authorization": f"Bearer {remote.token}"}
    assert await refused(opened(site, made["path"], additional_headers=bearer)) == (409, "lease_lost")
    held = {**bearer, "Workstead-Lease": remote.lease}
    async with opened(site, made["path"], additional_headers=held) as socket:
        await greeted(socket)


@pytest.mark.fault(65)
async def test_a_token_that_ends_ends_the_view(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    secret = await remote.other_token("runs:read")
    headers = {"Authorization": f"Bearer {secret}"}
    path = f"/v1/runs/{run_id}/desktop/view"
    async with opened(site, path, additional_headers=headers) as socket:
        await greeted(socket)
        me = await remote.call("GET", "/v1/me", headers=headers)
        await remote.call("DELETE", f"/v1/tokens/{me['token_id']}", 204)
        assert await closed(socket) == viewing.Ended.FORBIDDEN


async def test_the_run_ends(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
        await remote.call("POST", f"/v1/runs/{run_id}/stop", json={"mode": "collect"})
        assert await closed(socket) == viewing.Ended.RUN_OVER
    assert (await ticket(remote, run_id, 409))["type"].endswith("run_not_ready")
    assert (await remote.end(run_id)).phase is Phase.DONE


async def test_the_worker_dies_and_the_next_one_shows_it_again(remote: Remote, site: str, vnc: FakeVnc) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"]) as socket:
        await greeted(socket)
        await remote.kill_worker()
        assert await closed(socket) == viewing.Ended.WORKER_AWAY
    made = await ticket(remote, run_id)
    assert await refused(opened(site, made["path"], made["ticket"])) == (503, "worker_away")


@pytest.mark.parametrize("sent", [HELLO + struct.pack(">BBHi", 6, 0, 0, 1 << 30), "text"])
async def test_a_viewer_that_does_not_speak_rfb_is_cut(remote: Remote, site: str, vnc: FakeVnc, sent: bytes) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"]) as socket:
        await socket.send(sent)
        assert await closed(socket) == viewing.Ended.BAD_RFB
    await holds(lambda: vnc.open == 0)


async def test_a_viewer_that_never_reads_is_cut(remote: Remote, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewing, "SEND_S", 0.5)
    run_id = await begun(remote)
    async with FakeVnc.serving("flood") as flood:
        remote.stage.machine.ports[VNC] = flood.port
        made = await ticket(remote, run_id)
        socket = await opened(site, made["path"], made["ticket"], max_queue=1)
        try:
            await holds(lambda: flood.sent > 0)
            await until(lambda: remote.stage.has_event(run_id, "desktop.view", 2))
            await holds(lambda: flood.open == 0)
            assert flood.sent < 64 << 20
        finally:
            socket.transport.abort()


@pytest.mark.parametrize(("manner", "code"), [("rude", viewing.Ended.SCREEN_LOST), ("silent", None)])
async def test_screens_that_lie(remote: Remote, site: str, manner: str, code: int | None) -> None:
    run_id = await begun(remote)
    async with FakeVnc.serving(manner) as liar:
        remote.stage.machine.ports[VNC] = liar.port
        made = await ticket(remote, run_id)
        async with opened(site, made["path"], made["ticket"]) as socket:
            await socket.send(HELLO)
            if code is not None:
                assert await closed(socket) == code
        await holds(lambda: liar.open == 0)
    assert await remote.stage.is_in(run_id, Phase.RUNNING)


async def test_nobody_listens_on_the_screens_port(remote: Remote, site: str) -> None:
    run_id = await begun(remote)
    made = await ticket(remote, run_id)
    async with opened(site, made["path"], made["ticket"]) as socket:
        assert await closed(socket) == viewing.Ended.SCREEN_LOST


async def test_viewers_are_counted(remote: Remote, site: str, vnc: FakeVnc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_view, "MOST_OF_RUN", 1)
    run_id = await begun(remote)
    one, two, three = [await ticket(remote, run_id) for _ in range(3)]
    async with opened(site, one["path"], one["ticket"]) as socket:
        await greeted(socket)
        assert await refused(opened(site, two["path"], two["ticket"])) == (429, "too_many_viewers")
    await holds(lambda: not remote.app.state.api.bridge.viewers)
    async with opened(site, three["path"], three["ticket"]) as socket:
        await greeted(socket)
    async with remote.stage.db.reading() as tx:
        assert await leases.standing(tx, run_id) is None
