"""Who confirms what a provider will not do unasked: the agent's policy, or a person over the API.

While a person is waited for the run's phase is ``awaiting_confirmation``; its attempt goes on running, and so does its wall
clock. A worker that dies meanwhile is followed by one that waits for the same row.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from service.domain.agents import AgentSettings
from service.domain.desktop import SafetyCheck
from service.domain.errors import Unavailable
from service.domain.events import EventType
from service.lifecycle.context import Context
from service.scaffolds.contract import Translated
from service.scaffolds.loops import Decision, Journal, silent
from service.store import confirmations
from service.store.confirmations import ACKNOWLEDGED, DENIED, PENDING
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow
from service.store.rows_desktop import ConfirmationRow

KIND = "confirmation"
SETTING = "confirm"
"""Of the agent; its scaffold has checked it."""
AUTO, HUMAN, POLICY = "auto_ack", "human", "policy"
SCAN_S = 5.0
"""Most seconds between two looks at the row, whatever notifications say."""


class Confirmations:
    """See :class:`service.scaffolds.loops.LoopConfirmations`."""

    def __init__(self, ctx: Context, attempt: AttemptRow, journal: Journal, settings: AgentSettings) -> None:
        self._ctx = ctx
        self._attempt = attempt
        self._journal = journal
        self._policy = str(settings.further.get(SETTING, AUTO))

    async def ask(self, key: str, checks: Sequence[SafetyCheck], intent: str) -> Decision:
        asked = [check.model_dump() for check in checks]
        human = self._policy == HUMAN

        async def act() -> dict[str, Any]:
            if human:
                row = await self._wait(key, asked, intent)
                return {"acknowledged": row.state == ACKNOWLEDGED, "by": row.decided_by or ""}
            return {"acknowledged": self._policy == AUTO, "by": POLICY}

        def tell(value: dict[str, Any]) -> Sequence[Translated]:
            state = ACKNOWLEDGED if value["acknowledged"] else DENIED
            payload = {"id": key, "state": state, "by": value["by"], "checks": asked, "intent": intent}
            return [Translated(EventType.CONFIRMATION, payload)]

        # What a person decides is in the log already.
        value = await self._journal.step(KIND, key, act, silent if human else tell)
        return Decision(acknowledged=value["acknowledged"] is True, by=str(value["by"]))

    async def _wait(self, key: str, checks: list[dict[str, Any]], intent: str) -> ConfirmationRow:
        ctx, attempt = self._ctx, self._attempt

        async def ask(tx: Tx) -> ConfirmationRow:
            return await confirmations.ask(tx, attempt, key, checks, intent)

        async with ctx.notifications.subscribe("runs", attempt.run_id) as changes:
            row = await retrying(ctx.db, ask, ctx.timing.database_patience_s)
            while row.state == PENDING:
                await changes.wait(SCAN_S)
                with suppress(Unavailable):
                    async with ctx.db.reading() as tx:
                        row = await confirmations.get(tx, attempt.run_id, row.id) or row
        return row
