"""A worker's bridge refuses whoever is not the API of now."""

import stat
from typing import Any

import pytest

from service.api.bridge import BridgeClient, WorkerAway
from service.domain.errors import Invalid
from service.workers.bridge import BridgePlace, serve_bridge
from tests.integration.driving.remote import Remote, context_of

CALL: dict[str, Any] = {"call": "list_files", "path": "", "limit": 10}


async def named(remote: Remote, run_id: str) -> dict[str, Any]:
    (attempt,) = await remote.stage.attempts(run_id)
    return {**CALL, "run": run_id, "attempt": attempt.n, "fence": attempt.fence}


async def test_a_caller_that_is_behind_is_refused(remote: Remote) -> None:
    run = await remote.begin()
    right, client = await named(remote, run.id), BridgeClient()
    assert (await client.call(remote.place.fact, right)).head == {"truncated": False}
    for wrong in ({"fence": right["fence"] - 1}, {"attempt": 2}, {"run": "run_none"}):
        with pytest.raises(WorkerAway):
            await client.call(remote.place.fact, right | wrong)
    with pytest.raises(Invalid):
        await client.call(remote.place.fact, right | {"call": "destroy"})
    with pytest.raises(Invalid):
        await client.call(remote.place.fact, right | {"limit": "many"})


async def test_only_our_own_user_may_open_the_socket(remote: Remote) -> None:
    await remote.begin()
    assert stat.S_IMODE(remote.place.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(remote.place.path.parent.stat().st_mode) == 0o700


async def test_on_tcp_the_hosts_token_is_asked_for(remote: Remote, unused_tcp_port: int) -> None:
    run = await remote.begin()
    place = BridgePlace(remote.place.path, ("127.0.0.1", unused_tcp_port), "a secret of this deployment")
    right = await named(remote, run.id)
    async with serve_bridge(context_of(remote), remote.stage.host.id, place):
        assert (await BridgeClient("a secret of this deployment").call(place.fact, right)).head == {"truncated": False}
        for wrong in ("", "another"):
            with pytest.raises(Invalid):
                await BridgeClient(wrong).call(place.fact, right)


async def test_a_worker_that_is_not_there_is_away(remote: Remote) -> None:
    for place in ("", "unix:/nowhere", "tcp:127.0.0.1:1", "ftp:x"):
        with pytest.raises(WorkerAway):
            await BridgeClient().call(place, CALL)
