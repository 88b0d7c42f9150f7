"""A shell's WebSocket without a sandbox that has terminals: who may open one, and what is said when there is none."""

import asyncio

import pytest

from service.domain.run_states import Flag
from tests.api.helpers import served
from tests.integration.driving.remote import Remote
from workstead.errors import Problem
from workstead.websocket import CLOSE, WebSocket


async def test_a_sandbox_without_terminals_says_so_and_the_run_is_assisted(remote: Remote) -> None:
    run = await remote.begin()
    async with served(remote.app) as url:
        headers = {"Authorization": f"Bearer {remote.token}"}
        opened = await asyncio.to_thread(WebSocket.open, f"{url}/v1/runs/{run.id}/shell", headers)
        message = await asyncio.to_thread(opened.receive)
        assert (message.kind, message.data[2:]) == (CLOSE, b"tool_failed")
        opened.close()
    assert Flag.ASSISTED in (await remote.stage.row(run.id)).flags


async def test_a_run_that_does_not_run_has_no_shell(remote: Remote) -> None:
    run = await remote.stage.submit(await remote.stage.task(), await remote.agent())
    async with served(remote.app) as url:
        headers = {"Authorization": f"Bearer {remote.token}"}
        with pytest.raises(Problem) as refused:
            await asyncio.to_thread(WebSocket.open, f"{url}/v1/runs/{run.id}/shell", headers)
    assert (refused.value.status, refused.value.type) == (409, "run_not_running")
    assert Flag.ASSISTED not in (await remote.stage.row(run.id)).flags
