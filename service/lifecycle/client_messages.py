"""Messages of a remote driver to the task's simulated client: the same client, journal and transcript as for our loops.

Done by the worker that has the run: the gateway's own side is there. A message has the sender's id, under which it is
answered once, whoever is killed meanwhile; messages of one run are answered one after the other.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from service.lifecycle.context import Context
from service.lifecycle.loop_access import client_reach
from service.lifecycle.loop_artefacts import keep_artefacts
from service.lifecycle.loop_journal import LoopJournal
from service.lifecycle.model_access import open_gateway
from service.lifecycle.simulated_client import TRANSCRIPT, SimulatedClient
from service.lifecycle.work import Work, load_work
from service.models.clients import client_for
from service.models.messages import ModelClient, Reach
from service.sandboxes.contract import Sandbox
from service.scaffolds.loops import ClientReply
from service.store.rows import AttemptRow

Connect = Callable[[Reach], ModelClient]


class ClientMessages:
    """Of all runs of a worker."""

    def __init__(self, ctx: Context, connect: Connect = client_for) -> None:
        self._ctx = ctx
        self._connect = connect
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    async def answer(
        self, attempt: AttemptRow, sandbox: Sandbox, id: str, text: str, attachments: Mapping[str, str]
    ) -> ClientReply:
        """Ask the client, or return what it said to this id before.

        Raises Conflict ``no_messages_left``, Invalid (no client, no facts, no model), GatewayAway (who plays it cannot
        answer now: nothing is counted), Fault, FenceLost, SandboxError, Unavailable.
        """
        async with self._alone(attempt.run_id):
            work = await load_work(self._ctx, attempt)
            # A worker that took the run over has not told the gateway of it yet.
            await open_gateway(self._ctx, attempt, work, sandbox, work.seconds_left)
            model = self._connect(await client_reach(self._ctx, attempt, work))
            try:
                return await self._ask(attempt, work, model, id, text, attachments)
            finally:
                await model.close()

    async def _ask(
        self, attempt: AttemptRow, work: Work, model: ModelClient, id: str, text: str, attachments: Mapping[str, str]
    ) -> ClientReply:
        client = await SimulatedClient.open(self._ctx, work, await LoopJournal.open(self._ctx, attempt), model)
        known = await client.recall()
        reply = known.get(id) or await client.reply(client.sent + 1, text, attachments, id)
        self._ctx.crash.reach("client_message.answered")
        await keep_artefacts(self._ctx, attempt, work, {TRANSCRIPT: client.transcript()})
        return reply

    @asynccontextmanager
    async def _alone(self, run_id: str) -> AsyncGenerator[None]:
        lock = self._locks.setdefault(run_id, asyncio.Lock())
        self._users[run_id] = self._users.get(run_id, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[run_id] -= 1
            if not self._users[run_id]:
                del self._users[run_id], self._locks[run_id]
